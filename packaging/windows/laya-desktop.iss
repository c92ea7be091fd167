; Inno Setup 6: the installer for Windows. Build the application first (python packaging\package.py app), then
;   iscc /DVersion=0.1.0 packaging\windows\laya-desktop.iss
#ifndef Version
  #define Version "0.0.0"
#endif

[Setup]
AppId={{6B0C5C0E-3C57-4D0B-9C55-9A6D6A3F7B21}
AppName=Laya Desktop
AppVersion={#Version}
AppPublisher=Laya
DefaultDirName={autopf}\Laya Desktop
DefaultGroupName=Laya Desktop
PrivilegesRequired=lowest
PrivilegesRequiredOverridesAllowed=dialog
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
MinVersion=10.0.17763
OutputDir=..\..\dist
OutputBaseFilename=laya-desktop-{#Version}-setup
SetupIconFile=..\..\build\package\icons\laya-desktop.ico
UninstallDisplayIcon={app}\laya-desktop.exe
LicenseFile=..\..\LICENSE
Compression=lzma2
SolidCompression=yes
WizardStyle=modern
CloseApplications=yes

[Languages]
Name: "en"; MessagesFile: "compiler:Default.isl"

[Tasks]
Name: "desktopicon"; Description: "{cm:CreateDesktopIcon}"; GroupDescription: "{cm:AdditionalIcons}"; Flags: unchecked

[Files]
Source: "..\..\dist\laya-desktop\*"; DestDir: "{app}"; Flags: ignoreversion recursesubdirs createallsubdirs

[Icons]
Name: "{group}\Laya Desktop"; Filename: "{app}\laya-desktop.exe"
Name: "{autodesktop}\Laya Desktop"; Filename: "{app}\laya-desktop.exe"; Tasks: desktopicon

[Run]
Filename: "{app}\laya-desktop.exe"; Description: "{cm:LaunchProgram,Laya Desktop}"; Flags: nowait postinstall skipifsilent

#!/usr/bin/env bash
# Sign, pack and notarise dist/Laya Desktop.app on macOS.
#   packaging/macos/sign.sh "Developer ID Application: NAME (TEAM)" [NOTARY_PROFILE]
# NOTARY_PROFILE is one that `xcrun notarytool store-credentials` made; without it the image is signed only.
set -euo pipefail
cd "$(dirname "$0")/../.."
identity=${1:?"the identity to sign with, as 'security find-identity -v -p codesigning' shows it"}
profile=${2:-}
app="dist/Laya Desktop.app"
image="dist/laya-desktop.dmg"
[ -d "$app" ] || { echo "build the application first: python packaging/package.py app" >&2; exit 1; }

# Inside out: libraries and helper programs before what contains them.
find "$app/Contents" -type f \( -name '*.dylib' -o -name '*.so' -o -perm -u+x \) -print0 |
  xargs -0 codesign --force --timestamp --options runtime --sign "$identity"
codesign --force --timestamp --options runtime --entitlements packaging/macos/entitlements.plist --sign "$identity" "$app"
codesign --verify --deep --strict --verbose=2 "$app"

rm -f "$image"
hdiutil create -volname "Laya Desktop" -srcfolder "$app" -format UDZO "$image"
codesign --force --timestamp --sign "$identity" "$image"
if [ -n "$profile" ]; then
  xcrun notarytool submit "$image" --keychain-profile "$profile" --wait
  xcrun stapler staple "$image"
fi

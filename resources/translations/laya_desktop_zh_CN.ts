<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name></name>
    <message>
        <source>Save</source>
        <translation>保存</translation>
    </message>
    <message>
        <source>Save as…</source>
        <translation>另存为…</translation>
    </message>
    <message>
        <source>Open…</source>
        <translation>打开…</translation>
    </message>
    <message>
        <source>Export a copy…</source>
        <translation>导出副本…</translation>
    </message>
    <message>
        <source>Show the file in its folder</source>
        <translation>在文件夹中显示文件</translation>
    </message>
    <message>
        <source>Revert</source>
        <translation>还原</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>启动</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>退出</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Save as</source>
        <translation>另存为</translation>
    </message>
    <message>
        <source>Open a configuration</source>
        <translation>打开配置</translation>
    </message>
    <message>
        <source>Export a copy</source>
        <translation>导出副本</translation>
    </message>
    <message>
        <source>Exported a copy to {path}.</source>
        <translation>已导出副本到 {path}。</translation>
    </message>
    <message>
        <source>{gigabytes} GB</source>
        <translation>{gigabytes} GB</translation>
    </message>
    <message>
        <source>{value:.0f} MB</source>
        <translation>{value:.0f} MB</translation>
    </message>
    <message>
        <source>{value:.0f} kB</source>
        <translation>{value:.0f} kB</translation>
    </message>
    <message>
        <source>{used} of {total} GB</source>
        <translation>{used} / {total} GB</translation>
    </message>
    <message>
        <source>{value:.0f} ms</source>
        <translation>{value:.0f} ms</translation>
    </message>
    <message>
        <source>{value:.1f} ms</source>
        <translation>{value:.1f} ms</translation>
    </message>
    <message>
        <source>{n} core</source>
        <translation>{n} 核</translation>
    </message>
    <message>
        <source>{n} cores</source>
        <translation>{n} 核</translation>
    </message>
    <message>
        <source>{n} line</source>
        <translation>{n} 行</translation>
    </message>
    <message>
        <source>{n} lines</source>
        <translation>{n} 行</translation>
    </message>
    <message>
        <source>{n} model</source>
        <translation>{n} 个模型</translation>
    </message>
    <message>
        <source>{n} models</source>
        <translation>{n} 个模型</translation>
    </message>
    <message>
        <source>{n} other alert</source>
        <translation>另外 {n} 条警报</translation>
    </message>
    <message>
        <source>{n} other alerts</source>
        <translation>另外 {n} 条警报</translation>
    </message>
    <message>
        <source>{n} request</source>
        <translation>{n} 个请求</translation>
    </message>
    <message>
        <source>{n} requests</source>
        <translation>{n} 个请求</translation>
    </message>
    <message>
        <source>{n} route</source>
        <translation>{n} 条路由</translation>
    </message>
    <message>
        <source>{n} routes</source>
        <translation>{n} 条路由</translation>
    </message>
    <message>
        <source>{n} slot</source>
        <translation>{n} 个槽位</translation>
    </message>
    <message>
        <source>{n} slots</source>
        <translation>{n} 个槽位</translation>
    </message>
    <message>
        <source>{n} token</source>
        <translation>{n} token</translation>
    </message>
    <message>
        <source>{n} tokens</source>
        <translation>{n} token</translation>
    </message>
    <message>
        <source>{n} unsaved change</source>
        <translation>{n} 处未保存的更改</translation>
    </message>
    <message>
        <source>{n} unsaved changes</source>
        <translation>{n} 处未保存的更改</translation>
    </message>
    <message>
        <source>{value:.0f} {unit} ago</source>
        <translation>{value:.0f} {unit} 前</translation>
    </message>
    <message>
        <source>now</source>
        <translation>刚刚</translation>
    </message>
    <message>
        <source>{value:.0f} d ago</source>
        <translation>{value:.0f} 天前</translation>
    </message>
    <message>
        <source>Commands</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>Shortcuts</source>
        <translation>快捷键</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Mini view</source>
        <translation>迷你视图</translation>
    </message>
    <message>
        <source>Overview on a whole screen</source>
        <translation>全屏总览</translation>
    </message>
    <message>
        <source>{file} is here already, as {name}.</source>
        <translation>{file} 已经在这里，名称是 {name}。</translation>
    </message>
    <message>
        <source>Folder with models</source>
        <translation>模型文件夹</translation>
    </message>
    <message>
        <source>Go to {page}</source>
        <translation>转到{page}</translation>
    </message>
    <message>
        <source>Unload {name}</source>
        <translation>卸载 {name}</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Load {name}</source>
        <translation>加载 {name}</translation>
    </message>
    <message>
        <source>Load {name} on CPU</source>
        <translation>在 CPU 上加载 {name}</translation>
    </message>
    <message>
        <source>Load {name} on GPU</source>
        <translation>在 GPU 上加载 {name}</translation>
    </message>
    <message>
        <source>Appearance: as the system</source>
        <translation>外观：跟随系统</translation>
    </message>
    <message>
        <source>Appearance: light</source>
        <translation>外观：浅色</translation>
    </message>
    <message>
        <source>Appearance: dark</source>
        <translation>外观：深色</translation>
    </message>
    <message>
        <source>Language: {name}</source>
        <translation>语言：{name}</translation>
    </message>
    <message>
        <source>as the system</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>First steps</source>
        <translation>入门</translation>
    </message>
    <message>
        <source>Load the demo model</source>
        <translation>加载演示模型</translation>
    </message>
    <message>
        <source>Copy the address</source>
        <translation>复制地址</translation>
    </message>
    <message>
        <source>Add a model</source>
        <translation>添加模型</translation>
    </message>
    <message>
        <source>Find models on this machine</source>
        <translation>查找本机上的模型</translation>
    </message>
    <message>
        <source>Open the folder of logs</source>
        <translation>打开日志文件夹</translation>
    </message>
    <message>
        <source>Open the folder of models</source>
        <translation>打开模型文件夹</translation>
    </message>
    <message>
        <source>YAML files (*.yaml *.yml);;All files (*)</source>
        <translation>YAML 文件 (*.yaml *.yml);;所有文件 (*)</translation>
    </message>
    <message>
        <source>Reload</source>
        <translation>重新加载</translation>
    </message>
    <message>
        <source>Overwrite</source>
        <translation>覆盖</translation>
    </message>
    <message>
        <source>Show guard</source>
        <translation>查看守护</translation>
    </message>
    <message>
        <source>Show model</source>
        <translation>查看模型</translation>
    </message>
    <message>
        <source>Show log</source>
        <translation>查看日志</translation>
    </message>
    <message>
        <source>Model {model}: {error}</source>
        <translation>模型 {model}：{error}</translation>
    </message>
    <message>
        <source>{name} has changed on disk since it was read.</source>
        <translation>{name} 读入之后在磁盘上被改动了。</translation>
    </message>
    <message>
        <source>Saved to {path}.</source>
        <translation>已保存到 {path}。</translation>
    </message>
    <message>
        <source>The node could not start: {value}</source>
        <translation>节点无法启动：{value}</translation>
    </message>
    <message>
        <source>the reason is in the log.</source>
        <translation>原因见日志。</translation>
    </message>
    <message>
        <source>Server settings</source>
        <translation>服务器设置</translation>
    </message>
    <message>
        <source>Save the changes before closing?</source>
        <translation>关闭前保存更改吗？</translation>
    </message>
    <message>
        <source>Go back to the saved file? These changes are lost.</source>
        <translation>恢复到已保存的文件？这些更改会丢失。</translation>
    </message>
    <message>
        <source>Laya Desktop</source>
        <translation>Laya Desktop</translation>
    </message>
    <message>
        <source>
… and {value} more</source>
        <translation>
… 还有 {value} 项</translation>
    </message>
    <message>
        <source>Pure routing</source>
        <translation>纯路由</translation>
    </message>
    <message>
        <source>Small model</source>
        <translation>小模型</translation>
    </message>
    <message>
        <source>Larger model</source>
        <translation>较大模型</translation>
    </message>
    <message>
        <source>Requests per second</source>
        <translation>每秒请求数</translation>
    </message>
    <message>
        <source>Tokens per second</source>
        <translation>每秒 token 数</translation>
    </message>
    <message>
        <source>Latency, p50</source>
        <translation>延迟 p50</translation>
    </message>
    <message>
        <source>Latency, p95</source>
        <translation>延迟 p95</translation>
    </message>
    <message>
        <source>Latency, p99</source>
        <translation>延迟 p99</translation>
    </message>
    <message>
        <source>First token, p50</source>
        <translation>首个 token p50</translation>
    </message>
    <message>
        <source>First token, p99</source>
        <translation>首个 token p99</translation>
    </message>
    <message>
        <source>Between tokens, p50</source>
        <translation>token 间隔 p50</translation>
    </message>
    <message>
        <source>Between tokens, p99</source>
        <translation>token 间隔 p99</translation>
    </message>
    <message>
        <source>Routing, p50</source>
        <translation>路由 p50</translation>
    </message>
    <message>
        <source>Routing, p99</source>
        <translation>路由 p99</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>CPU</source>
        <translation>CPU</translation>
    </message>
    <message>
        <source>RAM peak</source>
        <translation>内存峰值</translation>
    </message>
    <message>
        <source>router</source>
        <translation>路由器</translation>
    </message>
    <message>
        <source>prompt {prompt}, answer {answer} tokens</source>
        <translation>提示词 {prompt}、回答 {answer} token</translation>
    </message>
    <message>
        <source>Latency</source>
        <translation>延迟</translation>
    </message>
    <message>
        <source>ms, log</source>
        <translation>ms，对数</translation>
    </message>
    <message>
        <source>Throughput</source>
        <translation>吞吐量</translation>
    </message>
    <message>
        <source>requests/s</source>
        <translation>请求/秒</translation>
    </message>
    <message>
        <source>Routing, as the node measures it</source>
        <translation>路由（节点自测）</translation>
    </message>
    <message>
        <source>µs, log</source>
        <translation>µs，对数</translation>
    </message>
    <message>
        <source>CPU of the node</source>
        <translation>节点的 CPU</translation>
    </message>
    <message>
        <source>% of a core</source>
        <translation>单核百分比</translation>
    </message>
    <message>
        <source>First token</source>
        <translation>首个 token</translation>
    </message>
    <message>
        <source>tokens/s</source>
        <translation>token/秒</translation>
    </message>
    <message>
        <source>Between tokens</source>
        <translation>token 间隔</translation>
    </message>
    <message>
        <source>At once</source>
        <translation>并发</translation>
    </message>
    <message>
        <source>Figure</source>
        <translation>指标</translation>
    </message>
    <message>
        <source>TTFT p50</source>
        <translation>TTFT p50</translation>
    </message>
    <message>
        <source>TTFT p99</source>
        <translation>TTFT p99</translation>
    </message>
    <message>
        <source>ITL p50</source>
        <translation>ITL p50</translation>
    </message>
    <message>
        <source>Answered</source>
        <translation>已回答</translation>
    </message>
    <message>
        <source>req/s</source>
        <translation>请求/秒</translation>
    </message>
    <message>
        <source>p50</source>
        <translation>p50</translation>
    </message>
    <message>
        <source>p95</source>
        <translation>p95</translation>
    </message>
    <message>
        <source>p99</source>
        <translation>p99</translation>
    </message>
    <message>
        <source>Routing p99</source>
        <translation>路由 p99</translation>
    </message>
    <message>
        <source>best</source>
        <translation>最佳</translation>
    </message>
    <message>
        <source>The process that measures ended unexpectedly with exit code {code}.</source>
        <translation>测量进程意外结束，退出码 {code}。</translation>
    </message>
    <message>
        <source>cannot be loaded</source>
        <translation>无法加载</translation>
    </message>
    <message>
        <source>added</source>
        <translation>已添加</translation>
    </message>
    <message>
        <source>Added as {added_as}: {path}</source>
        <translation>已添加为 {added_as}：{path}</translation>
    </message>
    <message>
        <source>{context_length} tokens of context</source>
        <translation>上下文 {context_length} token</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Found in</source>
        <translation>来源</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>大小</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>权重</translation>
    </message>
    <message>
        <source>It only says so: guard.mode is warn.</source>
        <translation>只提示：guard.mode 为 warn。</translation>
    </message>
    <message>
        <source>, and {counted}</source>
        <translation>，{counted}</translation>
    </message>
    <message>
        <source>Calm again. Last alert: {age}.</source>
        <translation>已恢复平静。上一条警报：{age}。</translation>
    </message>
    <message>
        <source>Calm.</source>
        <translation>平静。</translation>
    </message>
    <message>
        <source>Load again</source>
        <translation>重新加载</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
    <message>
        <source>{began}, for {seconds}</source>
        <translation>{began}，持续 {seconds}</translation>
    </message>
    <message>
        <source>nothing was done</source>
        <translation>未采取措施</translation>
    </message>
    <message>
        <source>plain text in the file: replace it by a new key</source>
        <translation>在文件中是明文：请换成新的密钥</translation>
    </message>
    <message>
        <source>made {isoformat}</source>
        <translation>创建于 {isoformat}</translation>
    </message>
    <message>
        <source>kept as a hash</source>
        <translation>以哈希保存</translation>
    </message>
    <message>
        <source>Admin</source>
        <translation>管理</translation>
    </message>
    <message>
        <source>Callers need one of the keys below.</source>
        <translation>调用者需要下面的任一密钥。</translation>
    </message>
    <message>
        <source>They need no key.</source>
        <translation>不需要密钥。</translation>
    </message>
    <message>
        <source>Only programs on this machine reach the node. {who}</source>
        <translation>只有本机程序能访问节点。{who}</translation>
    </message>
    <message>
        <source>every address of this machine</source>
        <translation>本机的所有地址</translation>
    </message>
    <message>
        <source>⚠ Others on the network reach the node on {place}; they need one of the keys below.</source>
        <translation>⚠ 网络上的其他机器可通过 {place} 访问节点；它们需要下面的任一密钥。</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>Level</source>
        <translation>级别</translation>
    </message>
    <message>
        <source>Source</source>
        <translation>来源</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>消息</translation>
    </message>
    <message>
        <source>{first}  (+{value} lines)</source>
        <translation>{first}  （+{value} 行）</translation>
    </message>
    <message>
        <source>The load failed and left no reason. The log has the details.</source>
        <translation>加载失败，没有给出原因。详情见日志。</translation>
    </message>
    <message>
        <source>{entries} answers, {size}</source>
        <translation>{entries} 个回答，{size}</translation>
    </message>
    <message>
        <source>Cache: {kept}</source>
        <translation>缓存：{kept}</translation>
    </message>
    <message>
        <source>Cache: {hits} of {asked} requests, {saved} saved · {kept}</source>
        <translation>缓存：命中 {hits} / {asked} 个请求，节省 {saved} · {kept}</translation>
    </message>
    <message>
        <source>Ready · {device_text}</source>
        <translation>就绪 · {device_text}</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>正在加载</translation>
    </message>
    <message>
        <source>Loading {value:.0f} %</source>
        <translation>正在加载 {value:.0f} %</translation>
    </message>
    <message>
        <source>Unloading</source>
        <translation>正在卸载</translation>
    </message>
    <message>
        <source>Died, {load_note}</source>
        <translation>已崩溃，{load_note}</translation>
    </message>
    <message>
        <source>Failed: {short_reason}</source>
        <translation>失败：{short_reason}</translation>
    </message>
    <message>
        <source>Not loaded</source>
        <translation>未加载</translation>
    </message>
    <message>
        <source> of {total_layers}</source>
        <translation> / {total_layers}</translation>
    </message>
    <message>
        <source>GPU, {offloaded_layers}{total} layers</source>
        <translation>GPU，{offloaded_layers}{total} 层</translation>
    </message>
    <message>
        <source>device unknown</source>
        <translation>设备未知</translation>
    </message>
    <message>
        <source>no reason given</source>
        <translation>没有给出原因</translation>
    </message>
    <message>
        <source>Looking for a GPU …</source>
        <translation>正在查找 GPU …</translation>
    </message>
    <message>
        <source>No GPU that this build can use was found.</source>
        <translation>没有找到此版本可用的 GPU。</translation>
    </message>
    <message>
        <source>No GPU was found on this machine.</source>
        <translation>本机上没有找到 GPU。</translation>
    </message>
    <message>
        <source>slots {slots} → {batch_size}</source>
        <translation>槽位 {slots} → {batch_size}</translation>
    </message>
    <message>
        <source>context {max_seq_len} → {max_seq_len2}</source>
        <translation>上下文 {max_seq_len} → {max_seq_len2}</translation>
    </message>
    <message>
        <source>{tokens} tokens × {counted}</source>
        <translation>{tokens} token × {counted}</translation>
    </message>
    <message>
        <source>{vram_bytes} VRAM</source>
        <translation>显存 {vram_bytes}</translation>
    </message>
    <message>
        <source>{rss_bytes} RAM</source>
        <translation>内存 {rss_bytes}</translation>
    </message>
    <message>
        <source>{number} decoding {tokens}</source>
        <translation>{number} 解码 {tokens}</translation>
    </message>
    <message>
        <source>{number} prefill {tokens}</source>
        <translation>{number} 预填充 {tokens}</translation>
    </message>
    <message>
        <source> · {tokens} cached</source>
        <translation> · 缓存 {tokens}</translation>
    </message>
    <message>
        <source>{number} free{cached}</source>
        <translation>{number} 空闲{cached}</translation>
    </message>
    <message>
        <source>idle</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source> of {queue_limit}</source>
        <translation> / {queue_limit}</translation>
    </message>
    <message>
        <source>{running} running · {waiting}{limit} waiting</source>
        <translation>运行 {running} · 等待 {waiting}{limit}</translation>
    </message>
    <message>
        <source>fits</source>
        <translation>放得下</translation>
    </message>
    <message>
        <source>tight</source>
        <translation>偏紧</translation>
    </message>
    <message>
        <source>will not fit</source>
        <translation>放不下</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>Choose a file to see what it would take</source>
        <translation>选择一个文件，看看它会占用多少</translation>
    </message>
    <message>
        <source>Would take</source>
        <translation>将占用</translation>
    </message>
    <message>
        <source>weights</source>
        <translation>权重</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV 缓存</translation>
    </message>
    <message>
        <source>compute</source>
        <translation>计算</translation>
    </message>
    <message>
        <source>worker</source>
        <translation>工作进程</translation>
    </message>
    <message>
        <source>{free} free</source>
        <translation>空闲 {free}</translation>
    </message>
    <message>
        <source>Would take on the {device}</source>
        <translation>将在 {device} 上占用</translation>
    </message>
    <message>
        <source>KV cache {kv_type}</source>
        <translation>KV 缓存 {kv_type}</translation>
    </message>
    <message>
        <source>context {tokens}</source>
        <translation>上下文 {tokens}</translation>
    </message>
    <message numerus="yes">
        <source>%n slot(s)</source>
        <translation>
            <numerusform>%n 个槽位</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n layer(s) on the GPU</source>
        <translation>
            <numerusform>GPU 上 %n 层</numerusform>
        </translation>
    </message>
    <message>
        <source>trained for {context_length} tokens</source>
        <translation>训练长度 {context_length} token</translation>
    </message>
    <message>
        <source>chat template</source>
        <translation>有聊天模板</translation>
    </message>
    <message>
        <source>no chat template</source>
        <translation>无聊天模板</translation>
    </message>
    <message>
        <source>Not a share of memory. Write a percentage from 1 to 100, or nothing for the guard&apos;s share.</source>
        <translation>这不是内存的份额。请填 1 到 100 的百分比；留空则用守护的份额。</translation>
    </message>
    <message>
        <source>It is loaded; its answers end and its memory is freed.</source>
        <translation>它已加载；回答会中断，内存会释放。</translation>
    </message>
    <message>
        <source>With it goes 1 route: {listed}.</source>
        <translation>同时会删除 1 条路由：{listed}。</translation>
    </message>
    <message>
        <source>With it go {count} routes: {listed}.</source>
        <translation>同时会删除 {count} 条路由：{listed}。</translation>
    </message>
    <message>
        <source>{listed} will lead to its other targets only.</source>
        <translation>{listed} 今后只会指向它的其他目标。</translation>
    </message>
    <message>
        <source>{listed} will lead to their other targets only.</source>
        <translation>{listed} 今后只会指向各自的其他目标。</translation>
    </message>
    <message>
        <source>Delete “{name}”?</source>
        <translation>删除“{name}”？</translation>
    </message>
    <message>
        <source>{first} and {last}</source>
        <translation>{first} 和 {last}</translation>
    </message>
    <message>
        <source>Critical</source>
        <translation>危急</translation>
    </message>
    <message>
        <source>Warning</source>
        <translation>警告</translation>
    </message>
    <message>
        <source>Model {name} failed</source>
        <translation>模型 {name} 失败</translation>
    </message>
    <message>
        <source>Routing</source>
        <translation>路由</translation>
    </message>
    <message>
        <source>Queue</source>
        <translation>队列</translation>
    </message>
    <message>
        <source>Decode</source>
        <translation>解码</translation>
    </message>
    <message>
        <source>Total</source>
        <translation>总计</translation>
    </message>
    <message>
        <source>Prompt</source>
        <translation>提示词</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>回答</translation>
    </message>
    <message>
        <source> ({cached_tokens} cached)</source>
        <translation> （缓存 {cached_tokens}）</translation>
    </message>
    <message>
        <source>Model {name}</source>
        <translation>模型 {name}</translation>
    </message>
    <message>
        <source>Route {name}  ·  {path}</source>
        <translation>路由 {name}  ·  {path}</translation>
    </message>
    <message>
        <source>The node answered {status} without a reason. The Logs page has the details.</source>
        <translation>节点返回了 {status}，没有给出原因。详情见日志页。</translation>
    </message>
    <message>
        <source>All</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>Live</source>
        <translation>进行中</translation>
    </message>
    <message>
        <source>Received</source>
        <translation>收到</translation>
    </message>
    <message>
        <source>Route</source>
        <translation>路由</translation>
    </message>
    <message>
        <source>Priority</source>
        <translation>优先级</translation>
    </message>
    <message>
        <source>Reply</source>
        <translation>答复</translation>
    </message>
    <message>
        <source>Duration</source>
        <translation>耗时</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>速度</translation>
    </message>
    <message>
        <source>Finish</source>
        <translation>结束</translation>
    </message>
    <message>
        <source>queued</source>
        <translation>排队</translation>
    </message>
    <message>
        <source>prefill</source>
        <translation>预填充</translation>
    </message>
    <message>
        <source>decoding</source>
        <translation>解码中</translation>
    </message>
    <message>
        <source>upstream</source>
        <translation>上游</translation>
    </message>
    <message>
        <source>done</source>
        <translation>完成</translation>
    </message>
    <message>
        <source>cancelled</source>
        <translation>已取消</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>streamed</source>
        <translation>流式</translation>
    </message>
    <message>
        <source>Nothing matches</source>
        <translation>没有匹配项</translation>
    </message>
    <message>
        <source>None of {counted} mentions “{strip}”.</source>
        <translation>{counted}中没有提到“{strip}”的。</translation>
    </message>
    <message>
        <source>Nothing is running</source>
        <translation>没有正在运行的请求</translation>
    </message>
    <message>
        <source>Requests appear here while they wait and while they are answered.</source>
        <translation>请求在等待和回答期间显示在这里。</translation>
    </message>
    <message>
        <source>No failed requests</source>
        <translation>没有失败的请求</translation>
    </message>
    <message>
        <source>Requests that end in an error appear here, with the reason.</source>
        <translation>以错误结束的请求连同原因显示在这里。</translation>
    </message>
    <message>
        <source>No requests yet</source>
        <translation>还没有请求</translation>
    </message>
    <message>
        <source>Send one to the address above, or try the Playground.</source>
        <translation>向上面的地址发送一个请求，或试试操练场。</translation>
    </message>
    <message>
        <source>Place in the queue; 1 is next.</source>
        <translation>在队列中的位置；1 表示下一个。</translation>
    </message>
    <message>
        <source>Tokens of the prompt.</source>
        <translation>提示词的 token 数。</translation>
    </message>
    <message>
        <source>Tokens of the answer so far.</source>
        <translation>到目前为止回答的 token 数。</translation>
    </message>
    <message>
        <source>Time to first token: from receipt, queue included.</source>
        <translation>首个 token 时间：从收到请求算起，包括排队。</translation>
    </message>
    <message>
        <source>Tokens per second while decoding.</source>
        <translation>解码时每秒的 token 数。</translation>
    </message>
    <message>
        <source>HTTP status of the reply.</source>
        <translation>答复的 HTTP 状态。</translation>
    </message>
    <message>
        <source>Target</source>
        <translation>目标</translation>
    </message>
    <message>
        <source>Phase</source>
        <translation>阶段</translation>
    </message>
    <message>
        <source>Place</source>
        <translation>位置</translation>
    </message>
    <message>
        <source>Status</source>
        <translation>状态</translation>
    </message>
    <message>
        <source>Error</source>
        <translation>错误</translation>
    </message>
    <message>
        <source>A regex runs on every request that no path or prefix takes: about 7 µs instead of 0.1 µs.</source>
        <translation>正则会对每个没有被路径或前缀接走的请求执行：约 7 µs，而不是 0.1 µs。</translation>
    </message>
    <message>
        <source>Chat below a path</source>
        <translation>某路径下的聊天</translation>
    </message>
    <message>
        <source>One model by a header</source>
        <translation>按请求头选模型</translation>
    </message>
    <message>
        <source>Two models share the requests</source>
        <translation>两个模型分担请求</translation>
    </message>
    <message>
        <source>Another target where the first one cannot</source>
        <translation>第一个不行时换另一个目标</translation>
    </message>
    <message>
        <source>A path of another version</source>
        <translation>另一版本的路径</translation>
    </message>
    <message>
        <source>Paths by a regular expression</source>
        <translation>用正则匹配路径</translation>
    </message>
    <message>
        <source>host: {host}</source>
        <translation>主机：{host}</translation>
    </message>
    <message>
        <source>{name}: any</source>
        <translation>{name}：任意</translation>
    </message>
    <message>
        <source>shadowed by {shadowed_by}</source>
        <translation>被 {shadowed_by} 遮蔽</translation>
    </message>
    <message>
        <source>regex: slower, checked last</source>
        <translation>正则：较慢，最后检查</translation>
    </message>
    <message>
        <source>edits not in force</source>
        <translation>修改尚未生效</translation>
    </message>
    <message>
        <source>{name} does not answer</source>
        <translation>{name} 没有响应</translation>
    </message>
    <message>
        <source>On</source>
        <translation>启用</translation>
    </message>
    <message>
        <source>Match</source>
        <translation>匹配</translation>
    </message>
    <message>
        <source>Hits</source>
        <translation>命中</translation>
    </message>
    <message>
        <source>Routing latency of the last ten seconds: 99 of 100 requests were handed on faster than this.</source>
        <translation>最近十秒的路由延迟：100 个请求中有 99 个在此时间内转交。</translation>
    </message>
    <message>
        <source>Takes requests. Click to switch off.</source>
        <translation>正在接收请求。点击可关闭。</translation>
    </message>
    <message>
        <source>Off. Click to switch on.</source>
        <translation>已关闭。点击可启用。</translation>
    </message>
    <message>
        <source>It is never reached: {shadowed_by} takes all of its requests first.</source>
        <translation>永远轮不到它：{shadowed_by} 会先接走它的所有请求。</translation>
    </message>
    <message>
        <source>p50 {p50} · p95 {p95} · p99 {p99} · max {highest}, over the last ten seconds</source>
        <translation>p50 {p50} · p95 {p95} · p99 {p99} · 最大 {highest},最近十秒</translation>
    </message>
    <message>
        <source>{target} is an upstream: another server answers.</source>
        <translation>{target} 是上游：由另一台服务器回答。</translation>
    </message>
    <message>
        <source>Running at {address}</source>
        <translation>运行于 {address}</translation>
    </message>
    <message>
        <source>The node could not start</source>
        <translation>节点无法启动</translation>
    </message>
    <message>
        <source>The node is stopped</source>
        <translation>节点已停止</translation>
    </message>
    <message>
        <source>Loaded: {names}</source>
        <translation>已加载：{names}</translation>
    </message>
    <message>
        <source>No model loaded</source>
        <translation>没有加载模型</translation>
    </message>
    <message>
        <source>Dismiss</source>
        <translation>关闭提示</translation>
    </message>
    <message>
        <source>What to measure</source>
        <translation>测量什么</translation>
    </message>
    <message>
        <source>Routing and a small model</source>
        <translation>路由加小模型</translation>
    </message>
    <message>
        <source>Routing and a larger model</source>
        <translation>路由加较大模型</translation>
    </message>
    <message>
        <source>Prompt tokens</source>
        <translation>提示词 token 数</translation>
    </message>
    <message>
        <source>Answer tokens</source>
        <translation>回答 token 数</translation>
    </message>
    <message>
        <source>Requests to a model, each level</source>
        <translation>每一档对模型的请求数</translation>
    </message>
    <message>
        <source>Seconds for each level, at most</source>
        <translation>每一档最多秒数</translation>
    </message>
    <message>
        <source>the node asks for one</source>
        <translation>节点需要密钥</translation>
    </message>
    <message>
        <source>API key</source>
        <translation>API 密钥</translation>
    </message>
    <message>
        <source>Requests at once</source>
        <translation>并发请求数</translation>
    </message>
    <message>
        <source>Requests at once, level by level</source>
        <translation>各档的并发请求数</translation>
    </message>
    <message>
        <source>Requests a level</source>
        <translation>每档请求数</translation>
    </message>
    <message>
        <source>Seconds, at most</source>
        <translation>最多秒数</translation>
    </message>
    <message>
        <source>Add a second model on the Models page to compare.</source>
        <translation>在模型页再添加一个模型才能比较。</translation>
    </message>
    <message>
        <source>Choose at least one scenario.</source>
        <translation>请至少选择一个场景。</translation>
    </message>
    <message>
        <source>Write up to {n} numbers from 1 to {most}, e.g. 1, 2, 4, 8.</source>
        <translation>请填写最多 {n} 个 1 到 {most} 之间的数，例如 1, 2, 4, 8。</translation>
    </message>
    <message>
        <source>Export…</source>
        <translation>导出…</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
    <message>
        <source>Apply</source>
        <translation>应用</translation>
    </message>
    <message>
        <source>Recommendation for this machine</source>
        <translation>给这台机器的建议</translation>
    </message>
    <message>
        <source>Figures</source>
        <translation>指标</translation>
    </message>
    <message>
        <source>{n} results compared</source>
        <translation>比较 {n} 个结果</translation>
    </message>
    <message>
        <source>Tune  ·  {model}, {n} at once</source>
        <translation>调优  ·  {model}，并发 {n}</translation>
    </message>
    <message>
        <source>Every setting was loaded on a node of its own and asked over HTTP.</source>
        <translation>每组设置都在单独的节点上加载，并通过 HTTP 测量。</translation>
    </message>
    <message>
        <source>Measure</source>
        <translation>测量</translation>
    </message>
    <message>
        <source>Tune</source>
        <translation>调优</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Nothing measured yet</source>
        <translation>还没有测量</translation>
    </message>
    <message>
        <source>Run measures how fast this node routes, and how fast its models answer, with more and more requests at once. Tune finds the settings that give the most tokens per second on this machine.</source>
        <translation>“运行”测量在并发请求越来越多时，节点路由有多快、模型回答有多快。“调优”找出在这台机器上每秒 token 最多的设置。</translation>
    </message>
    <message>
        <source>Run the benchmark</source>
        <translation>运行基准测试</translation>
    </message>
    <message>
        <source>The node is stopped. Press Start in the header, then run again.</source>
        <translation>节点已停止。请先按顶部的“启动”，再运行。</translation>
    </message>
    <message>
        <source>Starting …</source>
        <translation>正在启动 …</translation>
    </message>
    <message>
        <source>Cancelling …</source>
        <translation>正在取消 …</translation>
    </message>
    <message>
        <source>Loading {model} …</source>
        <translation>正在加载 {model} …</translation>
    </message>
    <message>
        <source>batch_size {slots}, num_worker {threads}</source>
        <translation>batch_size {slots}，num_worker {threads}</translation>
    </message>
    <message>
        <source>{target}, {n} at once</source>
        <translation>{target}，并发 {n}</translation>
    </message>
    <message>
        <source>{n} of {total}: {what}</source>
        <translation>{n} / {total}：{what}</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>完成</translation>
    </message>
    <message>
        <source>Cancelled. Nothing was saved.</source>
        <translation>已取消，没有保存。</translation>
    </message>
    <message>
        <source>Export results</source>
        <translation>导出结果</translation>
    </message>
    <message>
        <source>Exported to {path}.</source>
        <translation>已导出到 {path}。</translation>
    </message>
    <message>
        <source>Applied; it acts when {model} is loaded again.</source>
        <translation>已应用；{model} 下次加载时生效。</translation>
    </message>
    <message>
        <source>Applied.</source>
        <translation>已应用。</translation>
    </message>
    <message>
        <source>Overview – Laya Desktop</source>
        <translation>总览 – Laya Desktop</translation>
    </message>
    <message>
        <source>What saving would change in the file</source>
        <translation>保存会在文件中改动什么</translation>
    </message>
    <message>
        <source>Model folders</source>
        <translation>模型文件夹</translation>
    </message>
    <message>
        <source>“Find models” looks here, and in the folders of LM Studio, Ollama and others. It only reads.</source>
        <translation>“查找模型”会看这里，以及 LM Studio、Ollama 等的文件夹。只读取，不改动。</translation>
    </message>
    <message>
        <source>No folder of your own yet.</source>
        <translation>还没有自己的文件夹。</translation>
    </message>
    <message>
        <source>Add a folder…</source>
        <translation>添加文件夹…</translation>
    </message>
    <message>
        <source>Take this folder off the list; its files stay</source>
        <translation>从列表中移除这个文件夹；其中的文件保留</translation>
    </message>
    <message>
        <source>Take {folder} off the list</source>
        <translation>从列表中移除 {folder}</translation>
    </message>
    <message>
        <source>measuring …</source>
        <translation>正在测量 …</translation>
    </message>
    <message>
        <source>steady</source>
        <translation>平稳</translation>
    </message>
    <message>
        <source>other programs</source>
        <translation>其他程序</translation>
    </message>
    <message>
        <source>{ram_available_bytes} free</source>
        <translation>空闲 {ram_available_bytes}</translation>
    </message>
    <message>
        <source>not measured yet</source>
        <translation>尚未测量</translation>
    </message>
    <message>
        <source>no GPU</source>
        <translation>没有 GPU</translation>
    </message>
    <message>
        <source>VRAM{value} · {short_gpu_name}</source>
        <translation>显存{value} · {short_gpu_name}</translation>
    </message>
    <message>
        <source>{size} free</source>
        <translation>空闲 {size}</translation>
    </message>
    <message>
        <source>{name} {value:.1f} cores</source>
        <translation>{name} {value:.1f} 核</translation>
    </message>
    <message>
        <source>load {load_1min:.1f}</source>
        <translation>负载 {load_1min:.1f}</translation>
    </message>
    <message>
        <source>{running} running</source>
        <translation>运行 {running}</translation>
    </message>
    <message>
        <source> · limit {limit}</source>
        <translation> · 上限 {limit}</translation>
    </message>
    <message>
        <source>{waiting} waiting</source>
        <translation>等待 {waiting}</translation>
    </message>
    <message>
        <source>moving</source>
        <translation>有进展</translation>
    </message>
    <message>
        <source>{what} full in {time} at this rate</source>
        <translation>{what}照此速度{time}后用尽</translation>
    </message>
    <message>
        <source>full in {time} at this rate</source>
        <translation>照此速度{time}后用尽</translation>
    </message>
    <message>
        <source>{what} is {size} over the limit</source>
        <translation>{what}超出上限 {size}</translation>
    </message>
    <message>
        <source>{what} is at the limit</source>
        <translation>{what}已达上限</translation>
    </message>
    <message>
        <source>{size} to the limit, {trend}</source>
        <translation>距上限 {size}，{trend}</translation>
    </message>
    <message>
        <source>{size} to the limit</source>
        <translation>距上限 {size}</translation>
    </message>
    <message>
        <source>falling</source>
        <translation>正在下降</translation>
    </message>
    <message>
        <source>{what} unknown</source>
        <translation>{what}未知</translation>
    </message>
    <message>
        <source>queue full: new requests are refused</source>
        <translation>队列已满：新请求被拒绝</translation>
    </message>
    <message>
        <source>queue grows by {rate}, full in {time}</source>
        <translation>队列{rate}增长，{time}后排满</translation>
    </message>
    <message>
        <source>queue shrinks by {rate}</source>
        <translation>队列{rate}缩短</translation>
    </message>
    <message>
        <source>no queue</source>
        <translation>没有队列</translation>
    </message>
    <message>
        <source>empty</source>
        <translation>空</translation>
    </message>
    <message>
        <source>about {n} s</source>
        <translation>约 {n} 秒</translation>
    </message>
    <message>
        <source>about {n} min</source>
        <translation>约 {n} 分钟</translation>
    </message>
    <message>
        <source>a second</source>
        <translation>一秒</translation>
    </message>
    <message>
        <source>over an hour</source>
        <translation>一小时以上</translation>
    </message>
    <message>
        <source>{n} a minute</source>
        <translation>每分钟 {n} </translation>
    </message>
    <message>
        <source>{n} a second</source>
        <translation>每秒 {n} </translation>
    </message>
    <message>
        <source>Programs waited for memory in {n} % of the last 10 s</source>
        <translation>最近 10 秒中有 {n} % 的时间程序在等内存</translation>
    </message>
    <message>
        <source>{n} MB a second are read back from swap</source>
        <translation>每秒从交换区读回 {n} MB</translation>
    </message>
    <message>
        <source>{n} GB left on the disk of the log folder</source>
        <translation>日志文件夹所在磁盘剩余 {n} GB</translation>
    </message>
    <message>
        <source>{what} at {n} °C</source>
        <translation>{what} 温度 {n} °C</translation>
    </message>
    <message>
        <source>Nothing slowed down by heat</source>
        <translation>没有因过热而降速</translation>
    </message>
    <message>
        <source>{what} slowed down by heat</source>
        <translation>{what} 因过热而降速</translation>
    </message>
    <message>
        <source>{what} and {rest}</source>
        <translation>{what} 和 {rest}</translation>
    </message>
    <message>
        <source>Idle model &apos;{name}&apos; is unloaded</source>
        <translation>空闲模型“{name}”已卸载</translation>
    </message>
    <message>
        <source>&apos;{name}&apos; is loaded again</source>
        <translation>“{name}”重新加载</translation>
    </message>
    <message>
        <source>Batch requests wait</source>
        <translation>批量请求等待</translation>
    </message>
    <message>
        <source>Batch requests are refused</source>
        <translation>批量请求被拒绝</translation>
    </message>
    <message>
        <source>New models are not loaded</source>
        <translation>不加载新模型</translation>
    </message>
    <message>
        <source>Batch requests run again</source>
        <translation>批量请求恢复运行</translation>
    </message>
    <message>
        <source>Batch requests are taken again</source>
        <translation>重新接收批量请求</translation>
    </message>
    <message>
        <source>Models may be loaded again</source>
        <translation>可以再次加载模型</translation>
    </message>
    <message>
        <source>VRAM of GPU {n}</source>
        <translation>GPU {n} 的显存</translation>
    </message>
    <message>
        <source>{what}: {rest}</source>
        <translation>{what}：{rest}</translation>
    </message>
    <message>
        <source>Guard</source>
        <translation>守护</translation>
    </message>
    <message>
        <source>Alerts</source>
        <translation>警报</translation>
    </message>
    <message>
        <source>Alerts and what was done about them</source>
        <translation>警报以及采取的措施</translation>
    </message>
    <message>
        <source>Hide alerts</source>
        <translation>隐藏警报</translation>
    </message>
    <message>
        <source>On this desktop</source>
        <translation>在这个桌面上</translation>
    </message>
    <message>
        <source>Start with the session</source>
        <translation>随会话启动</translation>
    </message>
    <message>
        <source>Closing the window leaves the node running in the tray</source>
        <translation>关闭窗口后节点留在托盘中继续运行</translation>
    </message>
    <message>
        <source>Notify about alerts and failed loads</source>
        <translation>有警报和加载失败时通知</translation>
    </message>
    <message>
        <source>With the tray icon alone; models load when they are needed.</source>
        <translation>只显示托盘图标；模型在需要时加载。</translation>
    </message>
    <message>
        <source>This desktop shows no tray, so closing ends the program.</source>
        <translation>这个桌面没有托盘，所以关闭窗口就结束程序。</translation>
    </message>
    <message>
        <source>Only while another window is in front.</source>
        <translation>仅当别的窗口在前面时。</translation>
    </message>
    <message>
        <source>Could not write {path}: {why}.</source>
        <translation>无法写入 {path}：{why}。</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>Starting</source>
        <translation>正在启动</translation>
    </message>
    <message>
        <source>Running</source>
        <translation>运行中</translation>
    </message>
    <message>
        <source>Stopping</source>
        <translation>正在停止</translation>
    </message>
    <message>
        <source>Click to copy the address</source>
        <translation>点击复制地址</translation>
    </message>
    <message>
        <source>Review</source>
        <translation>查看</translation>
    </message>
    <message>
        <source>File</source>
        <translation>文件</translation>
    </message>
    <message>
        <source>File menu</source>
        <translation>文件菜单</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>已复制</translation>
    </message>
    <message>
        <source>new configuration</source>
        <translation>新配置</translation>
    </message>
    <message>
        <source>Header name</source>
        <translation>请求头名称</translation>
    </message>
    <message>
        <source>Header value</source>
        <translation>请求头值</translation>
    </message>
    <message>
        <source>Remove this condition</source>
        <translation>移除这个条件</translation>
    </message>
    <message>
        <source>Everybody on the network could use this node, so it opens only with a key, and there is none yet.</source>
        <translation>网络上的任何人都能使用这个节点，所以必须先有密钥才能开放，而现在还没有。</translation>
    </message>
    <message>
        <source>Callers send it as &apos;Authorization: Bearer KEY&apos; or &apos;x-api-key: KEY&apos;.</source>
        <translation>调用者以“Authorization: Bearer KEY”或“x-api-key: KEY”发送。</translation>
    </message>
    <message>
        <source>Copy it now: it is shown once, and only its hash is kept. It works at once; save to keep it.</source>
        <translation>请现在复制：它只显示一次，之后只保留哈希。它立即生效；保存后才会保留。</translation>
    </message>
    <message>
        <source>None: /admin is for this machine only.</source>
        <translation>没有：/admin 只供本机使用。</translation>
    </message>
    <message>
        <source>Revoke</source>
        <translation>吊销</translation>
    </message>
    <message>
        <source>Revoke now</source>
        <translation>立即吊销</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>The new key</source>
        <translation>新密钥</translation>
    </message>
    <message>
        <source>Copy the key</source>
        <translation>复制密钥</translation>
    </message>
    <message>
        <source>The key “{name}”:</source>
        <translation>密钥“{name}”：</translation>
    </message>
    <message>
        <source>Network and keys</source>
        <translation>网络和密钥</translation>
    </message>
    <message>
        <source>Reachable from the network</source>
        <translation>可从网络访问</translation>
    </message>
    <message>
        <source>Make a key and open</source>
        <translation>创建密钥并开放</translation>
    </message>
    <message>
        <source>Not now</source>
        <translation>暂不</translation>
    </message>
    <message>
        <source>No keys yet.</source>
        <translation>还没有密钥。</translation>
    </message>
    <message>
        <source>Whose, e.g. laptop</source>
        <translation>给谁用，例如 laptop</translation>
    </message>
    <message>
        <source>Name of the new key</source>
        <translation>新密钥的名称</translation>
    </message>
    <message>
        <source>New key</source>
        <translation>新建密钥</translation>
    </message>
    <message>
        <source>New admin key</source>
        <translation>新建管理密钥</translation>
    </message>
    <message>
        <source>Replace</source>
        <translation>替换</translation>
    </message>
    <message>
        <source>Give the key a name first: whose or what it is.</source>
        <translation>请先给密钥起个名字：给谁用或用于什么。</translation>
    </message>
    <message>
        <source>Everything</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>Info and above</source>
        <translation>信息及以上</translation>
    </message>
    <message>
        <source>Warnings and errors</source>
        <translation>警告和错误</translation>
    </message>
    <message>
        <source>Errors</source>
        <translation>错误</translation>
    </message>
    <message>
        <source>Filter messages</source>
        <translation>筛选消息</translation>
    </message>
    <message>
        <source>Least level shown</source>
        <translation>显示的最低级别</translation>
    </message>
    <message>
        <source>Follow</source>
        <translation>跟随</translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation>打开文件夹</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Clear</source>
        <translation>清除</translation>
    </message>
    <message>
        <source>Nothing to show</source>
        <translation>没有可显示的内容</translation>
    </message>
    <message>
        <source>No line of the log passes this filter.</source>
        <translation>没有日志行通过这个筛选。</translation>
    </message>
    <message>
        <source>Log lines</source>
        <translation>日志行</translation>
    </message>
    <message>
        <source>Selected line</source>
        <translation>选中的行</translation>
    </message>
    <message>
        <source>{shown} of {counted}</source>
        <translation>{shown} / {counted}</translation>
    </message>
    <message>
        <source>RAM</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>VRAM</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>Show Laya Desktop</source>
        <translation>显示 Laya Desktop</translation>
    </message>
    <message>
        <source>{n} waiting</source>
        <translation>等待 {n}</translation>
    </message>
    <message>
        <source>Slots: {words}</source>
        <translation>槽位：{words}</translation>
    </message>
    <message>
        <source>+{rest}, {busy} busy</source>
        <translation>+{rest}，{busy} 个忙</translation>
    </message>
    <message>
        <source>Last lines of the worker&apos;s log</source>
        <translation>工作进程日志的最后几行</translation>
    </message>
    <message>
        <source>Load on CPU</source>
        <translation>在 CPU 上加载</translation>
    </message>
    <message>
        <source>Load on GPU</source>
        <translation>在 GPU 上加载</translation>
    </message>
    <message>
        <source>Retry</source>
        <translation>重试</translation>
    </message>
    <message>
        <source>Load anyway</source>
        <translation>仍然加载</translation>
    </message>
    <message>
        <source>Once, although it may exhaust this machine&apos;s memory.</source>
        <translation>仅此一次，即使可能耗尽本机内存。</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>编辑</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>日志</translation>
    </message>
    <message>
        <source>Unload</source>
        <translation>卸载</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>聊天</translation>
    </message>
    <message>
        <source>Chat with it in the Playground</source>
        <translation>在操练场与它聊天</translation>
    </message>
    <message>
        <source>Forget the answers that the cache keeps</source>
        <translation>清除缓存中的回答</translation>
    </message>
    <message>
        <source>Clear the cache of {name}</source>
        <translation>清除 {name} 的缓存</translation>
    </message>
    <message>
        <source>Copy curl</source>
        <translation>复制 curl</translation>
    </message>
    <message>
        <source>Copy a request to this model as curl</source>
        <translation>以 curl 复制一个对此模型的请求</translation>
    </message>
    <message>
        <source>Takes effect at the next load: {reload}.</source>
        <translation>下次加载时生效：{reload}。</translation>
    </message>
    <message>
        <source>Hide the log</source>
        <translation>隐藏日志</translation>
    </message>
    <message>
        <source>Show the last lines of the log</source>
        <translation>显示日志的最后几行</translation>
    </message>
    <message>
        <source>Searching…</source>
        <translation>正在查找…</translation>
    </message>
    <message>
        <source>In the folders of LM Studio, Ollama, Hugging Face, llama.cpp, GPT4All, Jan and your own.</source>
        <translation>在 LM Studio、Ollama、Hugging Face、llama.cpp、GPT4All、Jan 以及你自己的文件夹中。</translation>
    </message>
    <message>
        <source>No models found</source>
        <translation>没有找到模型</translation>
    </message>
    <message>
        <source>Choose a file with the Model button, or another folder to search with the folder button.</source>
        <translation>用“模型”按钮选择一个文件，或用文件夹按钮再查找一个文件夹。</translation>
    </message>
    <message>
        <source>Search again</source>
        <translation>再次查找</translation>
    </message>
    <message>
        <source>Search another folder too</source>
        <translation>再查找一个文件夹</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Add</source>
        <translation>添加</translation>
    </message>
    <message>
        <source>Models on this machine</source>
        <translation>本机上的模型</translation>
    </message>
    <message>
        <source>The search failed</source>
        <translation>查找失败</translation>
    </message>
    <message>
        <source>No model has these words</source>
        <translation>没有模型包含这些词</translation>
    </message>
    <message>
        <source>Change or clear the filter.</source>
        <translation>请修改或清除筛选。</translation>
    </message>
    <message>
        <source>Select a model to add it.</source>
        <translation>选择一个模型来添加。</translation>
    </message>
    <message>
        <source>first come, first served</source>
        <translation>先到先服务</translation>
    </message>
    <message>
        <source>by priority</source>
        <translation>按优先级</translation>
    </message>
    <message>
        <source>on</source>
        <translation>开</translation>
    </message>
    <message>
        <source>off</source>
        <translation>关</translation>
    </message>
    <message>
        <source>Make it fit</source>
        <translation>调整到放得下</translation>
    </message>
    <message>
        <source>estimating …</source>
        <translation>正在估算 …</translation>
    </message>
    <message>
        <source>Fill in: {settings}</source>
        <translation>填入：{settings}</translation>
    </message>
    <message>
        <source>Choose a file</source>
        <translation>选择文件</translation>
    </message>
    <message>
        <source>Files used lately</source>
        <translation>最近使用的文件</translation>
    </message>
    <message>
        <source>No file was used lately</source>
        <translation>最近没有使用过文件</translation>
    </message>
    <message>
        <source>a unique name</source>
        <translation>唯一的名称</translation>
    </message>
    <message>
        <source>the guard&apos;s share</source>
        <translation>守护的份额</translation>
    </message>
    <message>
        <source>never, or e.g. 10m</source>
        <translation>从不，或如 10m</translation>
    </message>
    <message>
        <source>load with the node</source>
        <translation>随节点加载</translation>
    </message>
    <message>
        <source>while loading</source>
        <translation>加载时</translation>
    </message>
    <message>
        <source>make no room for others</source>
        <translation>不为其他模型让位</translation>
    </message>
    <message>
        <source>answer exact repeats</source>
        <translation>直接回答完全相同的请求</translation>
    </message>
    <message>
        <source>weights may be reread</source>
        <translation>权重可重新读入</translation>
    </message>
    <message>
        <source>keep the weights in RAM</source>
        <translation>把权重留在内存中</translation>
    </message>
    <message>
        <source>none, or e.g. style.gguf:0.8</source>
        <translation>无，或例如 style.gguf:0.8</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>GPU layers</source>
        <translation>GPU 层数</translation>
    </message>
    <message>
        <source>Slots</source>
        <translation>槽位</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>上下文</translation>
    </message>
    <message>
        <source>Threads</source>
        <translation>线程</translation>
    </message>
    <message>
        <source>Memory cap, %</source>
        <translation>内存上限 %</translation>
    </message>
    <message>
        <source>Waiting, most</source>
        <translation>最多等待数</translation>
    </message>
    <message>
        <source>Waiting, longest</source>
        <translation>最长等待</translation>
    </message>
    <message>
        <source>Unload idle after</source>
        <translation>空闲后卸载</translation>
    </message>
    <message>
        <source>At start</source>
        <translation>启动时</translation>
    </message>
    <message>
        <source>Warm-up</source>
        <translation>预热</translation>
    </message>
    <message>
        <source>Keep loaded</source>
        <translation>保持加载</translation>
    </message>
    <message>
        <source>Cache</source>
        <translation>缓存</translation>
    </message>
    <message>
        <source>Replicas</source>
        <translation>副本</translation>
    </message>
    <message>
        <source>Aliases</source>
        <translation>别名</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>引擎</translation>
    </message>
    <message>
        <source>KV cache type</source>
        <translation>KV 缓存类型</translation>
    </message>
    <message>
        <source>Flash attention</source>
        <translation>Flash attention</translation>
    </message>
    <message>
        <source>Map the file</source>
        <translation>映射文件</translation>
    </message>
    <message>
        <source>Lock</source>
        <translation>锁定</translation>
    </message>
    <message>
        <source>Adapters</source>
        <translation>适配器</translation>
    </message>
    <message>
        <source>Embeddings</source>
        <translation>嵌入</translation>
    </message>
    <message>
        <source>Tokens of context for each slot.</source>
        <translation>每个槽位的上下文 token 数。</translation>
    </message>
    <message>
        <source>Sequences decoded together.</source>
        <translation>一起解码的序列数。</translation>
    </message>
    <message>
        <source>Neither idle unload nor a load that needs its memory unloads it.</source>
        <translation>空闲卸载和需要内存的其他加载都不会卸载它。</translation>
    </message>
    <message>
        <source>Processes that each hold the model; requests go to the least busy one.</source>
        <translation>各自持有该模型的进程；请求交给最空闲的一个。</translation>
    </message>
    <message>
        <source>Other names that callers may use, with commas between.</source>
        <translation>调用者可用的其他名称，用逗号分隔。</translation>
    </message>
    <message>
        <source>How a text&apos;s tokens become one vector. auto: as the model&apos;s file says, else their mean.</source>
        <translation>文本的词元如何变成一个向量。auto：按模型文件所写，否则取平均值。</translation>
    </message>
    <message>
        <source>GGUF files of adapters (LoRA), with semicolons between; a scale other than 1 stands after a colon.</source>
        <translation>适配器（LoRA）的 GGUF 文件，用分号分隔；不为 1 的强度写在冒号之后。</translation>
    </message>
    <message>
        <source>llama.cpp runs GGUF files, transformers runs Hugging Face model folders.</source>
        <translation>llama.cpp 运行 GGUF 文件，transformers 运行 Hugging Face 模型文件夹。</translation>
    </message>
    <message>
        <source>Advanced</source>
        <translation>高级</translation>
    </message>
    <message>
        <source>q8_0 takes about half the memory of f16. A quantised type needs flash attention.</source>
        <translation>q8_0 约占 f16 一半的内存。量化类型需要 flash attention。</translation>
    </message>
    <message>
        <source>GPU {i}</source>
        <translation>GPU {i}</translation>
    </message>
    <message>
        <source>auto, of {cores} cores</source>
        <translation>自动，共 {cores} 核</translation>
    </message>
    <message>
        <source>{guard_percent:g}, the guard&apos;s share</source>
        <translation>{guard_percent:g}，守护的份额</translation>
    </message>
    <message>
        <source>Choose a model folder</source>
        <translation>选择模型文件夹</translation>
    </message>
    <message>
        <source>Choose a model file</source>
        <translation>选择模型文件</translation>
    </message>
    <message>
        <source>Models (*.gguf);;All files (*)</source>
        <translation>模型 (*.gguf);;所有文件 (*)</translation>
    </message>
    <message>
        <source>No model selected</source>
        <translation>没有选中模型</translation>
    </message>
    <message>
        <source>Select a model to edit it, or add one.</source>
        <translation>选择一个模型来编辑，或添加一个。</translation>
    </message>
    <message>
        <source>model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Find models…</source>
        <translation>查找模型…</translation>
    </message>
    <message>
        <source>Filter models</source>
        <translation>筛选模型</translation>
    </message>
    <message>
        <source>No models yet</source>
        <translation>还没有模型</translation>
    </message>
    <message>
        <source>Add a GGUF file: it is read, its memory is estimated, and it can be loaded with one click.</source>
        <translation>添加一个 GGUF 文件：读取它、估算内存，然后一键加载。</translation>
    </message>
    <message>
        <source>Unnamed model</source>
        <translation>未命名的模型</translation>
    </message>
    <message>
        <source>Pages</source>
        <translation>页面</translation>
    </message>
    <message>
        <source>1 min</source>
        <translation>1 分钟</translation>
    </message>
    <message>
        <source>5 min</source>
        <translation>5 分钟</translation>
    </message>
    <message>
        <source>30 min</source>
        <translation>30 分钟</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>暂停</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>Picture of the plots (PNG)…</source>
        <translation>曲线图片 (PNG)…</translation>
    </message>
    <message>
        <source>Values in this range (CSV)…</source>
        <translation>此范围内的数值 (CSV)…</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>Plots paused at {moment}; values are still recorded.</source>
        <translation>曲线在 {moment} 暂停；数值仍在记录。</translation>
    </message>
    <message>
        <source>Export picture</source>
        <translation>导出图片</translation>
    </message>
    <message>
        <source>PNG pictures (*.png)</source>
        <translation>PNG 图片 (*.png)</translation>
    </message>
    <message>
        <source>Export values</source>
        <translation>导出数值</translation>
    </message>
    <message>
        <source>CSV files (*.csv)</source>
        <translation>CSV 文件 (*.csv)</translation>
    </message>
    <message>
        <source>Could not write {path}: {strerror}.</source>
        <translation>无法写入 {path}：{strerror}。</translation>
    </message>
    <message>
        <source>Wrote {path}.</source>
        <translation>已写入 {path}。</translation>
    </message>
    <message>
        <source>Could not write {path}.</source>
        <translation>无法写入 {path}。</translation>
    </message>
    <message>
        <source>Type a command, a page or a model</source>
        <translation>输入命令、页面或模型</translation>
    </message>
    <message>
        <source>Find a command</source>
        <translation>查找命令</translation>
    </message>
    <message>
        <source>Commands that fit</source>
        <translation>匹配的命令</translation>
    </message>
    <message>
        <source>No command fits.</source>
        <translation>没有匹配的命令。</translation>
    </message>
    <message>
        <source>Changes act at once; they are kept when you save.</source>
        <translation>更改立即生效；保存后才会保留。</translation>
    </message>
    <message>
        <source>Acts at once, kept when you save.</source>
        <translation>立即生效，保存后保留。</translation>
    </message>
    <message>
        <source>Changes take effect at the next load.</source>
        <translation>更改在下次加载时生效。</translation>
    </message>
    <message>
        <source>Takes effect at the next load.</source>
        <translation>下次加载时生效。</translation>
    </message>
    <message>
        <source>Not in force: put right what is marked below.</source>
        <translation>未生效：请改正下面标出的地方。</translation>
    </message>
    <message>
        <source>Not in force: see what is marked.</source>
        <translation>未生效：见标出的地方。</translation>
    </message>
    <message>
        <source>A draft: it is not in use until you add it.</source>
        <translation>草稿：添加之前不会使用。</translation>
    </message>
    <message>
        <source>A draft, not in use until added.</source>
        <translation>草稿，添加前不使用。</translation>
    </message>
    <message>
        <source>YAML that this form makes</source>
        <translation>此表单生成的 YAML</translation>
    </message>
    <message>
        <source>Add {noun}</source>
        <translation>添加{noun}</translation>
    </message>
    <message>
        <source>Discard</source>
        <translation>放弃</translation>
    </message>
    <message>
        <source>Copy YAML</source>
        <translation>复制 YAML</translation>
    </message>
    <message>
        <source>Discard draft</source>
        <translation>放弃草稿</translation>
    </message>
    <message>
        <source>Discard edits</source>
        <translation>放弃修改</translation>
    </message>
    <message>
        <source>stopped at max tokens</source>
        <translation>达到最大 token 数而停止</translation>
    </message>
    <message>
        <source>stopped by you</source>
        <translation>被你停止</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>发送</translation>
    </message>
    <message>
        <source>Copy as curl</source>
        <translation>复制为 curl</translation>
    </message>
    <message>
        <source>Copy the request as a curl command</source>
        <translation>把请求复制为 curl 命令</translation>
    </message>
    <message>
        <source>Copy as Python</source>
        <translation>复制为 Python</translation>
    </message>
    <message>
        <source>Copy the request as a Python program</source>
        <translation>把请求复制为 Python 程序</translation>
    </message>
    <message>
        <source>e.g. Answer in one sentence.</source>
        <translation>例如：用一句话回答。</translation>
    </message>
    <message>
        <source>default</source>
        <translation>默认</translation>
    </message>
    <message>
        <source>no limit</source>
        <translation>不限</translation>
    </message>
    <message>
        <source>Send to</source>
        <translation>发送到</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>系统提示词</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>Max tokens</source>
        <translation>最大 token 数</translation>
    </message>
    <message>
        <source>Write a message. Enter sends, Shift+Enter makes a new line.</source>
        <translation>输入消息。Enter 发送，Shift+Enter 换行。</translation>
    </message>
    <message>
        <source>Choose a route or a model on the right and write a message below.</source>
        <translation>在右侧选择路由或模型，然后在下面输入消息。</translation>
    </message>
    <message>
        <source>Playground</source>
        <translation>操练场</translation>
    </message>
    <message>
        <source>Request</source>
        <translation>请求</translation>
    </message>
    <message>
        <source>Timing of the last answer</source>
        <translation>上一个回答的用时</translation>
    </message>
    <message>
        <source>The node is stopped. Press Start in the header, then send again.</source>
        <translation>节点已停止。请先按顶部的“启动”，再发送。</translation>
    </message>
    <message>
        <source>There is no route and no model to send to. Add a model on the Models page.</source>
        <translation>没有可发送的路由或模型。请在模型页添加模型。</translation>
    </message>
    <message>
        <source>Hello</source>
        <translation>你好</translation>
    </message>
    <message>
        <source>empty answer  ·  {line}</source>
        <translation>空回答  ·  {line}</translation>
    </message>
    <message>
        <source>Served by {target}</source>
        <translation>由 {target} 回答</translation>
    </message>
    <message>
        <source>through route {route}</source>
        <translation>经路由 {route}</translation>
    </message>
    <message>
        <source>cache {cache}</source>
        <translation>缓存 {cache}</translation>
    </message>
    <message>
        <source>No GPU to plot</source>
        <translation>没有可绘制的 GPU</translation>
    </message>
    <message>
        <source>Routing latency</source>
        <translation>路由延迟</translation>
    </message>
    <message>
        <source>Token throughput</source>
        <translation>token 吞吐量</translation>
    </message>
    <message>
        <source>per s</source>
        <translation>每秒</translation>
    </message>
    <message>
        <source>Queue and in flight</source>
        <translation>排队与进行中</translation>
    </message>
    <message>
        <source>waiting</source>
        <translation>等待</translation>
    </message>
    <message>
        <source>running</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>decode</source>
        <translation>解码</translation>
    </message>
    <message>
        <source>machine</source>
        <translation>整机</translation>
    </message>
    <message>
        <source>used</source>
        <translation>已用</translation>
    </message>
    <message>
        <source>GPU {index}</source>
        <translation>GPU {index}</translation>
    </message>
    <message>
        <source>Not measured yet.</source>
        <translation>尚未测量。</translation>
    </message>
    <message>
        <source>{minutes:.0f} min: p50 {p50} · p95 {p95} · p99 {p99} · max {highest}</source>
        <translation>{minutes:.0f} 分钟:p50 {p50} · p95 {p95} · p99 {p99} · 最大 {highest}</translation>
    </message>
    <message>
        <source>Copy the id</source>
        <translation>复制 ID</translation>
    </message>
    <message>
        <source>Cancel request</source>
        <translation>取消请求</translation>
    </message>
    <message>
        <source>Filter requests</source>
        <translation>筛选请求</translation>
    </message>
    <message>
        <source>Requests</source>
        <translation>请求</translation>
    </message>
    <message>
        <source>Copy id</source>
        <translation>复制 ID</translation>
    </message>
    <message>
        <source>In words</source>
        <translation>用文字</translation>
    </message>
    <message>
        <source>In the file</source>
        <translation>在文件中</translation>
    </message>
    <message>
        <source>Revert all</source>
        <translation>全部还原</translation>
    </message>
    <message>
        <source>In force on the node; not yet in the file.</source>
        <translation>已在节点上生效；尚未写入文件。</translation>
    </message>
    <message>
        <source>Prefix</source>
        <translation>前缀</translation>
    </message>
    <message>
        <source>Exact path</source>
        <translation>精确路径</translation>
    </message>
    <message>
        <source>Regex</source>
        <translation>正则</translation>
    </message>
    <message>
        <source>This path and everything below it. It is stripped; what follows names the API.</source>
        <translation>此路径及其下的一切。前缀会被去掉；余下部分指明 API。</translation>
    </message>
    <message>
        <source>This path and no other.</source>
        <translation>仅此路径。</translation>
    </message>
    <message>
        <source>RE2 expression for the whole path.</source>
        <translation>匹配整个路径的 RE2 表达式。</translation>
    </message>
    <message>
        <source>interactive</source>
        <translation>交互</translation>
    </message>
    <message>
        <source>normal</source>
        <translation>普通</translation>
    </message>
    <message>
        <source>batch</source>
        <translation>批量</translation>
    </message>
    <message>
        <source>accept what it costs</source>
        <translation>接受它的代价</translation>
    </message>
    <message>
        <source>any, or e.g. GET, POST</source>
        <translation>任意，或如 GET, POST</translation>
    </message>
    <message>
        <source>any</source>
        <translation>任意</translation>
    </message>
    <message>
        <source>any value</source>
        <translation>任意值</translation>
    </message>
    <message>
        <source>condition</source>
        <translation>条件</translation>
    </message>
    <message>
        <source>takes requests</source>
        <translation>接收请求</translation>
    </message>
    <message>
        <source>e.g. small ×2, large</source>
        <translation>例如 small ×2, large</translation>
    </message>
    <message>
        <source>taken off</source>
        <translation>去掉</translation>
    </message>
    <message>
        <source>as it is, or e.g. /v1</source>
        <translation>原样，或如 /v1</translation>
    </message>
    <message>
        <source>header</source>
        <translation>响应头</translation>
    </message>
    <message>
        <source>Path</source>
        <translation>路径</translation>
    </message>
    <message>
        <source>Use regex</source>
        <translation>使用正则</translation>
    </message>
    <message>
        <source>Methods</source>
        <translation>方法</translation>
    </message>
    <message>
        <source>Host</source>
        <translation>主机</translation>
    </message>
    <message>
        <source>Headers</source>
        <translation>请求头</translation>
    </message>
    <message>
        <source>Model id</source>
        <translation>模型 ID</translation>
    </message>
    <message>
        <source>Fallback</source>
        <translation>后备</translation>
    </message>
    <message>
        <source>Timeout</source>
        <translation>超时</translation>
    </message>
    <message>
        <source>Enabled</source>
        <translation>启用</translation>
    </message>
    <message>
        <source>Shared by</source>
        <translation>分担</translation>
    </message>
    <message>
        <source>Several targets with weights; the least busy one answers.</source>
        <translation>多个带权重的目标；由最空闲的一个回答。</translation>
    </message>
    <message>
        <source>In its place</source>
        <translation>替换为</translation>
    </message>
    <message>
        <source>Answers get</source>
        <translation>答复附带</translation>
    </message>
    <message>
        <source>Only requests whose body names this model.</source>
        <translation>仅限请求体指定此模型的请求。</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>That cannot be undone any more. {message}</source>
        <translation>这一步已无法撤销。{message}</translation>
    </message>
    <message>
        <source>headers, e.g. X-Tier: pro</source>
        <translation>请求头，例如 X-Tier: pro</translation>
    </message>
    <message>
        <source>model id of the body</source>
        <translation>请求体中的模型 ID</translation>
    </message>
    <message>
        <source>Method</source>
        <translation>方法</translation>
    </message>
    <message>
        <source>Path of the request</source>
        <translation>请求的路径</translation>
    </message>
    <message>
        <source>Headers, e.g. X-Tier: pro; X-Team: blue</source>
        <translation>请求头，例如 X-Tier: pro; X-Team: blue</translation>
    </message>
    <message>
        <source>The model that the body names; may be empty</source>
        <translation>请求体指定的模型；可以为空</translation>
    </message>
    <message>
        <source>Which route?</source>
        <translation>走哪条路由？</translation>
    </message>
    <message>
        <source>Try a request</source>
        <translation>试一个请求</translation>
    </message>
    <message>
        <source>nothing is sent</source>
        <translation>不会真的发送</translation>
    </message>
    <message>
        <source>“{wrong}” is not a header.</source>
        <translation>“{wrong}”不是请求头。</translation>
    </message>
    <message>
        <source>Write NAME: VALUE, several with a semicolon between.</source>
        <translation>请写成 NAME: VALUE，多个之间用分号。</translation>
    </message>
    <message>
        <source>No route takes it.</source>
        <translation>没有路由接收它。</translation>
    </message>
    <message>
        <source>Press Enter: the winner is named here, with the reason why each other route loses.</source>
        <translation>按 Enter：这里会显示胜出的路由，以及其他路由落选的原因。</translation>
    </message>
    <message>
        <source>No route selected</source>
        <translation>没有选中路由</translation>
    </message>
    <message>
        <source>Select a route to edit it, or add one.</source>
        <translation>选择一条路由来编辑，或添加一条。</translation>
    </message>
    <message>
        <source>route</source>
        <translation>路由</translation>
    </message>
    <message>
        <source>Routes</source>
        <translation>路由</translation>
    </message>
    <message>
        <source>New route for a common case</source>
        <translation>为常见情形新建路由</translation>
    </message>
    <message>
        <source>Duplicate</source>
        <translation>复制一份</translation>
    </message>
    <message>
        <source>Filter routes</source>
        <translation>筛选路由</translation>
    </message>
    <message>
        <source>No routes yet</source>
        <translation>还没有路由</translation>
    </message>
    <message>
        <source>A route says which requests go to which model. The standard paths under /v1 work without one.</source>
        <translation>路由决定哪些请求交给哪个模型。/v1 下的标准路径不需要路由也能用。</translation>
    </message>
    <message>
        <source>Add a route</source>
        <translation>添加路由</translation>
    </message>
    <message>
        <source>edit {name}</source>
        <translation>编辑 {name}</translation>
    </message>
    <message>
        <source>delete {name}</source>
        <translation>删除 {name}</translation>
    </message>
    <message>
        <source>move {name}</source>
        <translation>移动 {name}</translation>
    </message>
    <message>
        <source>switch {name} {value}</source>
        <translation>切换 {name} {value}</translation>
    </message>
    <message>
        <source>Unnamed route</source>
        <translation>未命名的路由</translation>
    </message>
    <message>
        <source>Undo: {undoText}</source>
        <translation>撤销：{undoText}</translation>
    </message>
    <message>
        <source>Nothing to undo</source>
        <translation>没有可撤销的操作</translation>
    </message>
    <message>
        <source>
Redo ({toString}): {redoText}</source>
        <translation>
重做（{toString}）：{redoText}</translation>
    </message>
    <message>
        <source>Saved results</source>
        <translation>已保存的结果</translation>
    </message>
    <message>
        <source>Choose two or more (Ctrl) to compare them.</source>
        <translation>选择两个或更多（Ctrl）来比较。</translation>
    </message>
    <message>
        <source>When</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>What</source>
        <translation>内容</translation>
    </message>
    <message>
        <source>System</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>浅色</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>Port</source>
        <translation>端口</translation>
    </message>
    <message>
        <source>The node moves to a new address at once.</source>
        <translation>节点立即换到新地址。</translation>
    </message>
    <message>
        <source>Largest request</source>
        <translation>最大请求</translation>
    </message>
    <message>
        <source>Server</source>
        <translation>服务器</translation>
    </message>
    <message>
        <source>Refuse new requests before memory runs out</source>
        <translation>在内存耗尽之前拒绝新请求</translation>
    </message>
    <message>
        <source>Warn, but go on</source>
        <translation>只警告，继续运行</translation>
    </message>
    <message>
        <source>Do nothing</source>
        <translation>什么都不做</translation>
    </message>
    <message>
        <source>When it gets tight</source>
        <translation>资源紧张时</translation>
    </message>
    <message>
        <source>Use at most</source>
        <translation>最多使用</translation>
    </message>
    <message>
        <source>Of RAM, and of each GPU&apos;s memory.</source>
        <translation>内存以及每个 GPU 显存的份额。</translation>
    </message>
    <message>
        <source>Leave in RAM</source>
        <translation>内存预留</translation>
    </message>
    <message>
        <source>Leave in VRAM</source>
        <translation>显存预留</translation>
    </message>
    <message>
        <source>Debug</source>
        <translation>调试</translation>
    </message>
    <message>
        <source>Info</source>
        <translation>信息</translation>
    </message>
    <message>
        <source>Warnings</source>
        <translation>警告</translation>
    </message>
    <message>
        <source>Errors only</source>
        <translation>仅错误</translation>
    </message>
    <message>
        <source>Not written</source>
        <translation>不写入</translation>
    </message>
    <message>
        <source>Prompts and answers are written</source>
        <translation>写入提示词和回答</translation>
    </message>
    <message>
        <source>Choose a folder</source>
        <translation>选择文件夹</translation>
    </message>
    <message>
        <source>Write</source>
        <translation>写入</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>文件夹</translation>
    </message>
    <message>
        <source>Files kept</source>
        <translation>保留文件数</translation>
    </message>
    <message>
        <source>One a day.</source>
        <translation>每天一个。</translation>
    </message>
    <message>
        <source>Size at most</source>
        <translation>总大小上限</translation>
    </message>
    <message>
        <source>Prompts</source>
        <translation>提示词</translation>
    </message>
    <message>
        <source>What people ask is private.</source>
        <translation>人们问的内容是私密的。</translation>
    </message>
    <message>
        <source>Logs</source>
        <translation>日志</translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation>外观</translation>
    </message>
    <message>
        <source>Comfortable</source>
        <translation>宽松</translation>
    </message>
    <message>
        <source>Compact</source>
        <translation>紧凑</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>语言</translation>
    </message>
    <message>
        <source>Where things are kept</source>
        <translation>存放位置</translation>
    </message>
    <message>
        <source>Configuration</source>
        <translation>配置</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Window</source>
        <translation>窗口</translation>
    </message>
    <message>
        <source>Show in the file manager</source>
        <translation>在文件管理器中显示</translation>
    </message>
    <message>
        <source>Show {lower} in the file manager</source>
        <translation>在文件管理器中显示{lower}</translation>
    </message>
    <message>
        <source>Laya Desktop {version}</source>
        <translation>Laya Desktop {version}</translation>
    </message>
    <message>
        <source>not saved yet</source>
        <translation>尚未保存</translation>
    </message>
    <message>
        <source>Folder for logs</source>
        <translation>日志文件夹</translation>
    </message>
    <message>
        <source>Add a route or a model on its page</source>
        <translation>在相应页面添加路由或模型</translation>
    </message>
    <message>
        <source>Move a route up in the file (Routes)</source>
        <translation>把路由在文件中上移（路由页）</translation>
    </message>
    <message>
        <source>Move a route down in the file (Routes)</source>
        <translation>把路由在文件中下移（路由页）</translation>
    </message>
    <message>
        <source>Read the model files again (Models)</source>
        <translation>重新读取模型文件（模型页）</translation>
    </message>
    <message>
        <source>Close what lies over the window</source>
        <translation>关闭窗口上层的面板</translation>
    </message>
    <message>
        <source>Next control</source>
        <translation>下一个控件</translation>
    </message>
    <message>
        <source>CPU {percent}</source>
        <translation>CPU {percent}</translation>
    </message>
    <message>
        <source>routing p99 {p99_us}</source>
        <translation>路由 p99 {p99_us}</translation>
    </message>
    <message>
        <source>{name} {free_bytes} free</source>
        <translation>{name} 空闲 {free_bytes}</translation>
    </message>
    <message>
        <source>You</source>
        <translation>你</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>{name}: busy</source>
        <translation>{name}：正忙</translation>
    </message>
    <message>
        <source>Which settings are best here?</source>
        <translation>这里用哪些设置最好？</translation>
    </message>
    <message>
        <source>Seconds for each setting, at most</source>
        <translation>每组设置最多秒数</translation>
    </message>
    <message>
        <source>Measure all the same</source>
        <translation>仍然测量</translation>
    </message>
    <message>
        <source>Seconds a setting</source>
        <translation>每组设置的秒数</translation>
    </message>
    <message>
        <source>There is no model. Add one on the Models page.</source>
        <translation>没有模型。请在模型页添加一个。</translation>
    </message>
    <message>
        <source>Unload {names} first, or choose to measure all the same.</source>
        <translation>请先卸载 {names}，或选择仍然测量。</translation>
    </message>
    <message numerus="yes">
        <source>Loads the model %n time(s), each time with other values of batch_size and num_worker, on a node of its own; about {time}. Your node and its settings are left alone.</source>
        <translation>
            <numerusform>在单独的节点上加载模型 %n 次，每次使用不同的 batch_size 和 num_worker；约需 {time}。你的节点和设置不受影响。</numerusform>
        </translation>
    </message>
    <message>
        <source>Loaded now: {names}. Their answers would be slower meanwhile, and the figures too low.</source>
        <translation>现在已加载：{names}。测量期间它们会回答得更慢，数值也会偏低。</translation>
    </message>
    <message>
        <source>Skip</source>
        <translation>跳过</translation>
    </message>
    <message>
        <source>Back</source>
        <translation>上一步</translation>
    </message>
    <message>
        <source>Next</source>
        <translation>下一步</translation>
    </message>
    <message>
        <source>Search another folder…</source>
        <translation>再查找一个文件夹…</translation>
    </message>
    <message>
        <source>A model is a file. Laya Desktop runs it here and gives it an address, so that programs can use it.</source>
        <translation>模型就是一个文件。Laya Desktop 在本机运行它，并给它一个地址，让程序可以使用。</translation>
    </message>
    <message>
        <source>Add and load it</source>
        <translation>添加并加载</translation>
    </message>
    <message>
        <source>The demo model is small and comes with Laya Desktop: good for a first try, not for real work.</source>
        <translation>演示模型很小，随 Laya Desktop 附带：适合初次尝试，不适合实际工作。</translation>
    </message>
    <message>
        <source>Chat in the Playground</source>
        <translation>在操练场聊天</translation>
    </message>
    <message>
        <source>Ctrl+K finds every command, F1 lists the shortcuts.</source>
        <translation>Ctrl+K 查找所有命令，F1 列出快捷键。</translation>
    </message>
    <message>
        <source>Welcome to Laya Desktop</source>
        <translation>欢迎使用 Laya Desktop</translation>
    </message>
    <message>
        <source>A model for this machine</source>
        <translation>适合这台机器的模型</translation>
    </message>
    <message>
        <source>Ready</source>
        <translation>就绪</translation>
    </message>
    <message>
        <source>{n} of {total}</source>
        <translation>{n} / {total}</translation>
    </message>
    <message>
        <source>Looking for models on this machine …</source>
        <translation>正在查找本机上的模型 …</translation>
    </message>
    <message numerus="yes">
        <source>%n model(s) in {place}</source>
        <translation>
            <numerusform>{place}中有 %n 个模型</numerusform>
        </translation>
    </message>
    <message>
        <source>Found here:</source>
        <translation>在本机找到：</translation>
    </message>
    <message>
        <source>No models were found here yet. The next step has one to start with.</source>
        <translation>还没有找到模型。下一步有一个可以先用。</translation>
    </message>
    <message>
        <source>None of the models found fits with ease. You can add one on the Models page.</source>
        <translation>找到的模型都放不下或偏紧。可以在模型页添加一个。</translation>
    </message>
    <message>
        <source>{name} is the largest one that fits with ease: {size}.</source>
        <translation>{name} 是能轻松放下的最大的一个：{size}。</translation>
    </message>
    <message>
        <source>The node is not running yet: press Start on top. Then any OpenAI-compatible program can use it.</source>
        <translation>节点还没有运行：请按顶部的“启动”。之后任何兼容 OpenAI 的程序都能使用它。</translation>
    </message>
    <message>
        <source>The node is running. Any OpenAI-compatible program can use it at this address:</source>
        <translation>节点正在运行。任何兼容 OpenAI 的程序都可以通过这个地址使用它：</translation>
    </message>
    <message>
        <source>Overview</source>
        <translation>总览</translation>
    </message>
    <message>
        <source>Benchmark</source>
        <translation>基准测试</translation>
    </message>
    <message>
        <source>The router answers {rate} requests a second with {n} at once; 99 of 100 within {p99}.</source>
        <translation>并发 {n} 时路由器每秒回答 {rate} 个请求；100 个中有 99 个在 {p99} 以内。</translation>
    </message>
    <message>
        <source>{model}: {n} at once is a good load for this machine: {rate} tokens a second, first token in {ttft}.</source>
        <translation>{model}：对这台机器来说并发 {n} 是合适的负载：每秒 {rate} token，首个 token {ttft}。</translation>
    </message>
    <message>
        <source>{model}: more than {n} at once only makes requests wait longer; throughput hardly grows.</source>
        <translation>{model}：并发超过 {n} 只会让请求等得更久；吞吐量几乎不再增长。</translation>
    </message>
    <message>
        <source>{model}: throughput still grows at {n} at once; measure more at once to find its limit.</source>
        <translation>{model}：并发 {n} 时吞吐量仍在增长；用更高的并发测量才能找到极限。</translation>
    </message>
    <message>
        <source>Routing takes {share} % of the time of a request to {model}.</source>
        <translation>路由占 {model} 一个请求耗时的 {share} %。</translation>
    </message>
    <message>
        <source>{target}: {count} of {total} requests failed with {n} at once: {why}</source>
        <translation>{target}：并发 {n} 时 {total} 个请求中有 {count} 个失败：{why}</translation>
    </message>
    <message>
        <source>{target} could not be measured: {why}</source>
        <translation>无法测量 {target}：{why}</translation>
    </message>
    <message>
        <source>With {n} at once the client itself was at its limit; the router could do more than the figure says.</source>
        <translation>并发 {n} 时客户端自己已到极限；路由器能做到的比数值更多。</translation>
    </message>
    <message>
        <source>{model} has {slots} slots: from {n} at once on, requests wait for a slot. Tune finds out whether more help.</source>
        <translation>{model} 有 {slots} 个槽位：从并发 {n} 起请求要等槽位。“调优”会测出更多槽位是否有用。</translation>
    </message>
    <message>
        <source>batch_size {batch}, num_worker {threads}: {gain} % tokens a second with {n} at once.</source>
        <translation>batch_size {batch}，num_worker {threads}：并发 {n} 时每秒 token {gain} %。</translation>
    </message>
    <message>
        <source>batch_size {batch}, num_worker {threads} works here; the present setting could not be measured.</source>
        <translation>batch_size {batch}，num_worker {threads} 在这里可行；当前设置无法测量。</translation>
    </message>
    <message>
        <source>The present setting is as good as any that was measured with {n} at once.</source>
        <translation>当前设置与并发 {n} 时测得的任何设置一样好。</translation>
    </message>
    <message>
        <source>No setting could be measured: {why}</source>
        <translation>没有一组设置能够测量：{why}</translation>
    </message>
    <message>
        <source>The present setting differed by {share} % when it was measured again: other programs were busy. Tune once more when the machine is quiet.</source>
        <translation>当前设置再测一次时相差 {share} %：其他程序正忙。请在机器空闲时再调优一次。</translation>
    </message>
    <message>
        <source>limit</source>
        <translation>上限</translation>
    </message>
    <message>
        <source>Click a name to hide its curve.</source>
        <translation>点击名称可隐藏其曲线。</translation>
    </message>
    <message>
        <source>auto chose the GPU.</source>
        <translation>auto 选择了 GPU。</translation>
    </message>
    <message>
        <source>auto chose the GPU: the model needs {needed} of {free} that are free.</source>
        <translation>auto 选择了 GPU：模型需要 {needed}，可用 {free}。</translation>
    </message>
    <message>
        <source>{why}, so auto chose the CPU.</source>
        <translation>{why}，因此 auto 选择了 CPU。</translation>
    </message>
    <message>
        <source>{why}, so auto put {n} of {total} layers on the GPU and the rest on the CPU.</source>
        <translation>{why}，因此 auto 将 {total} 层中的 {n} 层放在 GPU 上，其余放在 CPU 上。</translation>
    </message>
    <message>
        <source>{why}; {n} of {total} layers there make {part} tokens/s and the CPU alone {cpu}</source>
        <translation>{why}；将 {total} 层中的 {n} 层放在 GPU 上为 {part} tokens/s，仅用 CPU 为 {cpu}</translation>
    </message>
    <message>
        <source>{why}; not both could be measured</source>
        <translation>{why}；未能测出两者的速度</translation>
    </message>
    <message>
        <source>The GPU has {free} free and the model needs {needed}</source>
        <translation>GPU 可用 {free}，而模型需要 {needed}</translation>
    </message>
    <message>
        <source>No layers may go to the GPU</source>
        <translation>没有层可以放到 GPU 上</translation>
    </message>
    <message>
        <source>This llama.cpp build has no GPU backend</source>
        <translation>此 llama.cpp 构建没有 GPU 后端</translation>
    </message>
    <message>
        <source>This llama.cpp build has no GPU backend.</source>
        <translation>此 llama.cpp 构建没有 GPU 后端。</translation>
    </message>
    <message>
        <source>llama.cpp found no GPU</source>
        <translation>llama.cpp 未找到 GPU</translation>
    </message>
    <message>
        <source>llama.cpp found no GPU.</source>
        <translation>llama.cpp 未找到 GPU。</translation>
    </message>
    <message>
        <source>PyTorch found no GPU</source>
        <translation>PyTorch 未找到 GPU</translation>
    </message>
    <message>
        <source>This PyTorch ({version}) has no CUDA</source>
        <translation>此 PyTorch（{version}）不支持 CUDA</translation>
    </message>
    <message>
        <source>To use a GPU, reinstall llama-cpp-python with one: run {nvidia} (NVIDIA), {vulkan} (AMD, Intel) or {metal} (Apple) before {command}.</source>
        <translation>要使用 GPU，请重新安装带 GPU 后端的 llama-cpp-python：先设置 {nvidia}（NVIDIA）、{vulkan}（AMD、Intel）或 {metal}（Apple），再运行 {command}。</translation>
    </message>
    <message>
        <source>Install the GPU&apos;s driver and check that nothing hides the GPU (CUDA_VISIBLE_DEVICES).</source>
        <translation>请安装 GPU 驱动，并检查 GPU 是否被隐藏（CUDA_VISIBLE_DEVICES）。</translation>
    </message>
    <message>
        <source>The model has no chat template, so ChatML is used for chats.</source>
        <translation>模型没有聊天模板，因此聊天使用 ChatML。</translation>
    </message>
    <message>
        <source>This model is an encoder: it makes vectors of texts and generates none.</source>
        <translation>此模型是编码器：只把文本变成向量，不生成文本。</translation>
    </message>
    <message>
        <source>max_seq_len is {wanted}, but the model was trained for {trained} tokens only.</source>
        <translation>max_seq_len 为 {wanted}，但模型只按 {trained} 个 token 训练。</translation>
    </message>
    <message>
        <source>max_seq_len is {wanted}, but the model holds {held} tokens; it was loaded with {held}.</source>
        <translation>max_seq_len 为 {wanted}，但模型只容纳 {held} 个 token；已按 {held} 加载。</translation>
    </message>
    <message>
        <source>Weights are kept as {kind}.</source>
        <translation>权重以 {kind} 保存。</translation>
    </message>
    <message>
        <source>gpu_layers acts on llama.cpp only: PyTorch keeps the whole model on one device.</source>
        <translation>gpu_layers 只对 llama.cpp 有效：PyTorch 将整个模型放在一个设备上。</translation>
    </message>
</context>
</TS>

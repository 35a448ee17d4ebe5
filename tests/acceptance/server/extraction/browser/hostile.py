"""Pages that mean harm, by what they do: the body of each."""

from __future__ import annotations

_GROW = "<script>const kept = []; setInterval(() => kept.push(NEW), 0)</script>"
_WORK = "URL.createObjectURL(new Blob(['for (;;);']))"

#: Those that are answered with the page all the same; they take little of the processor.
READABLE = {
    "polls": "<h1>here</h1><script>setInterval(() => fetch('/none'), 20)</script>",
    "waits for an answer": "<h1>here</h1><script>fetch('/silent')</script>",
    "waits for a script": "<h1>here</h1><script src='/silent'></script>",
    "long timers": "<h1>here</h1><script>setTimeout(() => fetch('/none'), 60000)</script>",
    "permissions": """<h1>here</h1><script>
        const say = words => document.body.append(words);
        navigator.geolocation.getCurrentPosition(() => say('allowed'), () => say('refused'));
        Notification.requestPermission().then(answer => document.body.append(' notifications ' + answer));
        navigator.mediaDevices.getUserMedia({video: true, audio: true});
        navigator.clipboard.readText()</script>""",
    "fills storage": """<h1>here</h1><script>try { for (let i = 0;; i++) localStorage.setItem(i, 'x'.repeat(1 << 20)) }
        catch (error) { document.body.append(error.name) }</script>""",
    "file": "<h1>here</h1><script>location = 'file:///etc/passwd'</script>",
    "view-source": "<h1>here</h1><script>location = 'view-source:' + location</script>",
    "chrome": "<h1>here</h1><script>location = 'chrome://crash'</script>",
    "data": "<h1>here</h1><script>location = 'data:text/html,elsewhere'</script>",
    "frames of other schemes": """<h1>here</h1><iframe src='file:///etc/passwd'></iframe>
        <iframe src='view-source:file:///etc/passwd'></iframe><iframe src='chrome://version'></iframe>""",
    "closes itself": "<h1>here</h1><script>close()</script>",
}

#: Those that are not read, or not always: a clear problem is an answer to them.
HARMFUL = {
    "prompts": "<script>setInterval(() => prompt('again'), 0)</script>",
    "prints": "<script>for (let i = 0; i < 50; i++) print(); setInterval(print, 1)</script>",
    "scrolls": """<script>function more() {
        for (let i = 0; i < 200; i++) document.body.append(document.createElement('p'));
        scrollTo(0, 1e9); requestAnimationFrame(more) } addEventListener('load', more)</script>""",
    "anchors": "<script>let i = 0; setInterval(() => { location.hash = i++ }, 0)</script>",
    "sockets": "<script>setInterval(() => new WebSocket('ws://' + location.host + '/none'), 1)</script>",
    "windows": "<script>setInterval(() => open('about:blank'), 1)</script>",
    "downloads": """<script>setInterval(() => { const link = document.createElement('a');
        link.href = URL.createObjectURL(new Blob(['x'])); link.download = 'x'; link.click() }, 5)</script>""",
    "blur": "<style>div { filter: blur(500px); width: 9000px; height: 9000px }</style>" + "<div>" * 300,
    "alerts": "<script>while (true) alert('again')</script>",
    "questions": "<script>while (true) confirm('again')</script>",
    "leaving": "<script>onbeforeunload = event => { event.preventDefault(); return 'stay' };"
    "setInterval(() => location.reload(), 10)</script>",
    "reloads": "<script>setTimeout(() => location.reload(), 10)</script>",
    "refreshes": "<meta http-equiv=refresh content=0>",
    "moves": "<script>location = '?' + Math.random()</script>",
    "moves to a blob": "<script>location = URL.createObjectURL(new Blob(['x'], {type: 'text/html'}))</script>",
    "leaves nothing": "<script>location = 'about:blank'</script>",
    "script in an address": "<script>location = 'javascript:for (;;);'</script>",
    "history": "<script>let i = 0; setInterval(() => { for (let k = 0; k < 1000; k++) "
    "history.pushState(0, '', '?' + i++) }, 0)</script>",
    "frames of frames": "<script>for (let i = 0; i < 3; i++) { const frame = document.createElement('iframe');"
    "frame.src = '?' + Math.random(); document.documentElement.append(frame) }</script>",
    "many frames": "<script>for (let i = 0; i < 1000; i++) { const frame = document.createElement('iframe');"
    "frame.srcdoc = '<p>x'; document.documentElement.append(frame) }</script>",
    "many windows": "<script>for (let i = 0; i < 200; i++) open(location)</script>",
    "many workers": f"<script>for (let i = 0; i < 100; i++) new Worker({_WORK})</script>",
    "shared workers": f"<script>for (let i = 0; i < 20; i++) new SharedWorker({_WORK}, '' + i)</script>",
    "many requests": "<script>for (let i = 0; i < 5000; i++) fetch('/none?' + i).catch(() => 0)</script>",
    "many style sheets": "<style>" + "".join(f"@import '/none?{i}';" for i in range(1000)) + "</style>",
    "console": "<script>const many = act => { for (let i = 0; i < 10000; i++) act() };"
    "setInterval(() => many(() => console.log('x'.repeat(1000))), 0)</script>",
    "errors": "<script>const many = act => { for (let i = 0; i < 1000; i++) setTimeout(act) };"
    "setInterval(() => many(() => { throw 'x'.repeat(1000) }), 0)</script>",
    "expression": "<script>/(a+)+b/.test('a'.repeat(60))</script>",
    "depth": "<script>let at = document.documentElement; for (let i = 0; i < 100000; i++) {"
    "const next = document.createElement('div'); at.append(next); at = next }</script>",
}

#: Those that grow, each in another kind of memory.
GROWING = {
    "heap": "<script>const kept = []; while (true) kept.push(new Array(1e6).fill(kept.length))</script>",
    "buffers": "<script>const kept = []; while (true) kept.push(new Uint8Array(16 << 20).fill(1))</script>",
    "document": "<script>for (;;) document.body.append('x'.repeat(50), document.createElement('p'))</script>",
    "canvas": "<script>const kept = []; setInterval(() => { const canvas = document.createElement('canvas');"
    "canvas.width = canvas.height = 4000; const context = canvas.getContext('2d'); context.fillRect(0, 0, 4000, 4000);"
    "kept.push(canvas, context.getImageData(0, 0, 4000, 4000)) }, 0)</script>",
    "WebAssembly": "<script>const kept = []; setInterval(() => { const memory = new WebAssembly.Memory({initial: 512});"
    "new Uint8Array(memory.buffer).fill(1); kept.push(memory) }, 0)</script>",
    "blobs": _GROW.replace("NEW", "new Blob([new Uint8Array(16 << 20).fill(1)])"),
    "WebGL": "<script>const kept = []; for (let i = 0; i < 40; i++) { const canvas = document.createElement('canvas');"
    "canvas.width = canvas.height = 2048; kept.push(canvas.getContext('webgl')?.clear(16384)) }</script>",
    "IndexedDB": "<script>const asked = indexedDB.open('x'); asked.onupgradeneeded = () => "
    "asked.result.createObjectStore('s'); let i = 0; asked.onsuccess = () => setInterval(() => asked.result"
    ".transaction('s', 'readwrite').objectStore('s').put(new Uint8Array(16 << 20).fill(i), i++), 5)</script>",
    "caches": "<script>caches.open('x').then(cache => { let i = 0; setInterval(() => "
    "cache.put('/' + i++, new Response(new Uint8Array(16 << 20).fill(i))), 5) })</script>",
}

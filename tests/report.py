#!/usr/bin/env python3
# report.py CFP FOLDER: reports in a browser. They open without an error, ask no network for anything, a click on a decision
# shows what else it could be, and the timeline is zoomed and moved; on a wide screen and a phone, by light and in the dark.
import json, os, re, shutil, subprocess, sys, tempfile, time, urllib.request

browser = next((b for b in ('chromium', 'chromium-browser', 'google-chrome') if shutil.which(b)), None)
try:
    import websocket
except ImportError:
    websocket = None
if browser is None or websocket is None:
    print('skipped: a browser (chromium) and Python with websocket (python3-websocket) are needed to open reports')
    sys.exit(77)

cfp, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
tiny = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'tiny_gpt.json')
os.makedirs(folder, exist_ok=True)
os.chdir(folder)
failed = 0


def must(holds, what):
    global failed
    if not holds:
        print('FAILED:', what)
        failed += 1


class Page:
    """A page of the browser, by its debugging protocol."""

    def __init__(self, port):
        asked = urllib.request.Request(f'http://127.0.0.1:{port}/json/new?about:blank', method='PUT')
        target = json.load(urllib.request.urlopen(asked, timeout=30))
        self.socket = websocket.create_connection(target['webSocketDebuggerUrl'], timeout=60, suppress_origin=True)
        self.number, self.events = 0, []
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.ask(domain + '.enable')

    def ask(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({'id': self.number, 'method': method, 'params': parameters}))
        while True:
            said = json.loads(self.socket.recv())
            if said.get('id') == self.number:
                if 'error' in said:
                    sys.exit(f'FAILED: {method}: {said["error"]}')
                return said['result']
            self.events.append(said)

    def tell(self, script):
        out = self.ask('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in out:
            sys.exit(f'FAILED: {script}: {out["exceptionDetails"]}')
        return out['result'].get('value')

    def until(self, script, what):
        for _ in range(300):
            if self.tell(script):
                return
            time.sleep(0.05)
        must(False, what)

    def open(self, path, wide, high, scheme='light'):
        self.ask('Emulation.setDeviceMetricsOverride', width=wide, height=high, deviceScaleFactor=1, mobile=wide < 700)
        self.ask('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': scheme}])
        self.events.clear()
        self.ask('Page.navigate', url='file://' + os.path.abspath(path))
        self.until('document.readyState === "complete" && !!document.querySelector(".row")', f'{path} opens')

    def mouse(self, kind, x, y, **more):
        self.ask('Input.dispatchMouseEvent', type=kind, x=x, y=y, **more)

    def click(self, selector):
        x, y = self.tell(f'''(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();
            return [b.x + b.width / 2, b.y + b.height / 2]; }})()''')
        for kind in ('mousePressed', 'mouseReleased'):
            self.mouse(kind, x, y, button='left', clickCount=1)

    def wrong(self):
        """What the console says, what is thrown, and what is asked of a network."""
        out = []
        for e in self.events:
            method, p = e.get('method'), e.get('params', {})
            if method in ('Runtime.exceptionThrown', 'Log.entryAdded', 'Runtime.consoleAPICalled'):
                out.append(json.dumps(p)[:300])
            if method == 'Network.requestWillBeSent' and not p['request']['url'].startswith(('file:', 'data:')):
                out.append('asked for ' + p['request']['url'])
        return out


window = '(() => { const c = document.querySelector("#timeline").dataset; return [+c.from, +c.to]; })()'
picture = 'document.querySelector("#timeline").toDataURL()'


def look_at_timeline(page, path):
    page.tell('document.querySelector("#timeline").scrollIntoView({block: "center"})')
    left, top, wide, high = page.tell('''(() => { const b = document.querySelector("#timeline").getBoundingClientRect();
        return [b.x, b.y, b.width, b.height]; })()''')
    x, y = left + 0.6 * wide, top + 0.5 * high
    whole, before = page.tell(window), page.tell(picture)
    page.mouse('mouseWheel', x, y, deltaX=0, deltaY=-600)
    page.until(f'{window}[1] - {window}[0] < {0.7 * (whole[1] - whole[0])}', f'{path}: the wheel zooms in')
    must(page.tell(picture) != before, f'{path}: what is zoomed looks otherwise')
    near = page.tell(window)
    must(whole[0] < near[0] and near[1] < whole[1], f'{path}: around the pointer')
    page.mouse('mousePressed', x, y, button='left', clickCount=1)
    for step in range(1, 6):
        page.mouse('mouseMoved', x + 12 * step, y, button='left', buttons=1)
    page.mouse('mouseReleased', x + 60, y, button='left', clickCount=1)
    page.until(f'{window}[0] < {near[0]}', f'{path}: dragging moves it')
    moved = page.tell(window)
    must(abs((moved[1] - moved[0]) - (near[1] - near[0])) < 1e-6 * whole[1], f'{path}: and zooms nothing')
    page.click('#whole')
    page.until(f'{window}[0] === {whole[0]} && {window}[1] === {whole[1]}', f'{path}: all of it again')


def look_at_decisions(page, path):
    data = json.loads(page.tell('document.querySelector("#data").textContent'))
    number = max((n for n, d in enumerate(data['decisions']) if d['others']),
                 key=lambda n: data['decisions'][n]['operators_ms'])
    d = data['decisions'][number]
    must(page.tell('document.querySelector("#alternatives")') is None, f'{path}: nothing is chosen at first')
    page.tell(f'''for (let e = document.querySelector('#model .row[data-decision="{number}"]').closest("details"); e;
        e = e.parentElement.closest("details")) e.open = true''')
    page.click(f'#model .row[data-decision="{number}"]')
    page.until('!!document.querySelector("#alternatives")', f'{path}: a click shows alternatives')
    shown = page.tell('[...document.querySelectorAll("#alternatives td code")].map(c => c.textContent)')
    must(shown == [o['choice'] for o in d['others']], f'{path}: those of {d["label"]}, got {shown}')
    text = page.tell('document.querySelector("#details").innerText')
    must(d['label'] in text and d['choice'] in text, f'{path}: the details are of the decision that was clicked')
    must(re.search(r'[+−][0-9.]+ (µs|ms|s)\b', text) is not None, f'{path}: alternatives have a price, with its unit')
    must(page.tell('document.querySelectorAll(\'.row[aria-pressed="true"]\').length') >= 1, f'{path}: it is marked')


def look_at(page, path):
    page.open(path, 1280, 900)
    look_at_timeline(page, path)
    look_at_decisions(page, path)
    for wide, scheme in ((1280, 'light'), (1280, 'dark'), (390, 'light')):
        page.open(path, wide, 844, scheme)
        over = page.tell('document.documentElement.scrollWidth - innerWidth')
        must(over <= 0, f'{path}: {wide} pixels are enough, not {over} more')
        text = page.tell('document.body.innerText')
        for word in ('undefined', 'NaN', 'Infinity', '[object', 'null'):
            must(word not in text, f'{path}: it says {word}')
        for part in ('timeline', 'model', 'memory', 'plans', 'machine'):
            must(page.tell(f'document.querySelector("#{part}").getBoundingClientRect().height') > 20, f'{path}: {part} is empty')
        must(page.tell('document.querySelectorAll("#memory path").length') > 2, f'{path}: memory has its kinds')
        must(not page.wrong(), f'{path}: {page.wrong()}')
        ground = page.tell('getComputedStyle(document.body).backgroundColor')
        dark = sum(map(int, re.findall(r'\d+', ground)[:3])) < 200
        must(dark == (scheme == 'dark'), f'{path}: the ground is {ground}, {scheme}')


# A model's file may have any name: it ends no element of the page.
strange = "a'<b></script><img src=x>.json"
strange = strange.replace('/', '_')
shutil.copy(tiny, strange)
made = {'flat.html': ['--model', tiny, '--machine', 'a100-pcie-4', '--seq', '16', '--layers', '4'],
        'stages.html': ['--model', tiny, '--machine', 'a100-pcie-4', '--seq', '16', '--layers', '4', '--batch', '8',
                        '--stages', '2', '--micro-batches', '4'],
        'measured.html': ['--model', './' + strange, '--batch', '4', '--seq', '16', '--mesh', 'data=2']}
for path, words in made.items():
    done = subprocess.run([cfp, 'report', *words, '-o', path], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'FAILED: cfp report {" ".join(words)}: {done.stderr}')
with tempfile.TemporaryDirectory() as profile:
    chrome = subprocess.Popen([browser, '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
                               '--disable-background-networking', '--remote-debugging-port=0', '--user-data-dir=' + profile,
                               'about:blank'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        says = os.path.join(profile, 'DevToolsActivePort')
        for _ in range(600):
            if chrome.poll() is None and (not os.path.exists(says) or not open(says).read().strip()):
                time.sleep(0.05)
        if not os.path.exists(says):
            sys.exit(f'FAILED: {browser} does not start')
        page = Page(open(says).read().split()[0])
        for path in made:
            look_at(page, path)
    finally:
        chrome.terminate()
        chrome.wait(30)
print('reports open' if failed == 0 else f'{failed} failed')
sys.exit(failed != 0)

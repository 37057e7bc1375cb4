#!/usr/bin/env python3
# report_data.py CFP FOLDER: the data of reports add up, and are what `cfp plan` says of the same plans; traces are of the
# same timeline.
import json, os, re, subprocess, sys

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


def near(a, b, what, most=1e-9):
    must(abs(a - b) <= most * max(1.0, abs(a), abs(b)), f'{what}: {a} and {b}')


def run(*words):
    done = subprocess.run([cfp, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'FAILED: cfp {" ".join(words)}: {done.stderr}')
    return done.stdout


def data_of(page):
    text = open(page, encoding='utf-8').read()
    inside = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1)
    must('<' not in inside, 'the data of a page have no < in them')
    return json.loads(inside)


def lanes_of(page):
    """Milliseconds of work by decision and by kind of lane; lanes are in order, and end when the step does."""
    by_decision, busy, end = {}, 0, 0
    for place in page['places']:
        for number, lane in enumerate(place['lanes']):
            last = 0
            for begin, takes, name, decision, when, micro_batch in lane['work']:
                must(begin >= last - 1e-6, f'{lane["label"]} of {place["label"]}: work at {begin} before {last} is over')
                must(-1 <= name < len(page['names']) and 0 <= when < len(page['phases']), 'names and phases are known')
                must(0 <= micro_batch < page['micro_batches'], 'each piece of work is of a micro-batch')
                key = (decision, number > 0)
                by_decision[key] = by_decision.get(key, 0) + takes
                busy += takes if number == 0 else 0
                last = begin + takes
            end = max(end, last)
    return by_decision, busy, end


def check(page):
    by_decision, busy, end = lanes_of(page)
    rounded = 1e-7 * sum(len(l['work']) for p in page['places'] for l in p['lanes'])  # what rounding may come to
    near(end, page['timeline_ms'], 'work ends when the step does', 1e-6)
    near(sum(p['busy_ms'] for p in page['places']), busy, 'operators work as long as their lanes say', rounded)
    near(sum(d['operators_ms'] for d in page['decisions']) + page['unowned_ms'], busy, 'decisions are all work', rounded)
    for n, d in enumerate(page['decisions']):
        must(d['operators_ms'] >= by_decision.get((n, False), 0) - rounded, f'operators of {d["label"]}')
        near(d['collectives_ms'], by_decision.get((n, True), 0), f'collectives of {d["label"]}', rounded)
        near(d['sent_bytes'], sum(b for _, b in d['sent'].values()), f'what {d["label"]} sends')
        for o in d['others']:
            must(o['choice'] != d['choice'], f'{d["label"]}: an alternative is another choice')
            if o['best_ms'] is not None and o['alone_ms'] is not None:
                must(o['best_ms'] <= o['alone_ms'] + 1e-9, f'{d["label"]}: others at their best are at least as good')
        prices = [o['best_ms'] for o in d['others']]
        must(None in prices or prices == sorted(prices), f'{d["label"]}: the best alternative first')
    must(any(d['others'] for d in page['decisions']), 'some decision could choose otherwise')
    in_segments = [d for s in page['segments'] for b in s['blocks'] for d in b['decisions']]
    in_segments += [d for s in page['segments'] for d in s['shared']]
    must(sorted(in_segments) == list(range(len(page['decisions']))), 'each decision stands in one segment, once')
    for place in page['places']:
        for point in place['memory']:
            must(min(point[1:]) >= 0, f'memory is not negative: {point}')
            near(sum(point[1:]), place['peak_bytes'], 'kinds of memory are all of it')
        moments = [point[0] for point in place['memory']]
        must(moments == sorted(moments) and len(moments) > 10, 'memory is told over the step')
    near(max(p['peak_bytes'] for p in page['places']), page['predicted_peak_bytes'], 'the peak is that of a place')
    found = [p for p in page['plans'] if p['found']]
    must(len(found) == 1 and page['plans'][0] is found[0], 'the found plan is one, and stands first')
    near(found[0]['step_ms'], page['predicted_ms'], 'the found plan among all')
    near(found[0]['peak_bytes'], page['predicted_peak_bytes'], 'its memory')
    for p in page['plans'][1:]:
        must(not p['fits'] or p['step_ms'] >= page['predicted_ms'] * (1 - 1e-9), f'{p["plan"]} is not faster')
    for before, after in zip(page['curve'], page['curve'][1:]):
        must(before['step_ms'] <= after['step_ms'] and before['peak_bytes'] > after['peak_bytes'], 'a curve goes one way')


def check_trace(path, page):
    work = [e for e in json.load(open(path))['traceEvents'] if e['ph'] == 'X']
    must(len(work) == sum(len(l['work']) for p in page['places'] for l in p['lanes']), 'a trace has all work')
    near(max(e['ts'] + e['dur'] for e in work) / 1000, page['timeline_ms'], 'a trace ends when the step does', 1e-6)
    must(len({e['pid'] for e in work}) == len(page['places']), 'each place is a process of the trace')


# A described machine: figures are those of the same plan elsewhere.
there = ['--model', 'gpt2', '--machine', 'a100-pcie-4', '--seq', '128', '--layers', '4', '--mesh', 'x=2,y=2']
run('plan', *there, '--save-plan', 'plan.json', '--summary', 'summary.json')
run('report', *there, '-o', 'page.html', '--trace', 'trace.json')
plan, summary, page = json.load(open('plan.json')), json.load(open('summary.json')), data_of('page.html')
check(page)
check_trace('trace.json', page)
near(page['predicted_ms'], plan['predicted_ms'], 'the step of the page and of the saved plan')
near(page['timeline_ms'], plan['predicted_ms'], 'the timeline ends when the plan does')
near(page['predicted_peak_bytes'], plan['predicted_peak_bytes'], 'memory of the page and of the saved plan')
near(sum(d['parts_ms'] + d['edges_ms'] for d in page['decisions']), page['additive_ms'], 'sums of parts')
near(page['places'][0]['busy_ms'], (1 - page['idle']) * page['predicted_ms'], 'operators work, or stand idle')
sent = sum(d['bytes_per_rank'] for d in summary['decisions'])
must(sent > 0, 'ranks send something')
near(sent, sum(d['sent_bytes'] for d in page['decisions'] if d['choices'] > 1), 'bytes sent')
must(page['unowned_ms'] < 0.02 * page['predicted_ms'], 'nearly all work is of some decision')
must(len(page['plans']) == sum(len(m['plans']) for m in summary['meshes']), 'all plans of the summary are compared')
must(max(s['count'] for s in page['segments']) > 1, 'equal layers stand once')
must(len(page['curve']) > 1, 'memory is worth something')
# The same from the saved plan, which says what it is of; and in micro-batches.
run('report', 'plan.json', '--machine', 'a100-pcie-4', '-o', 'saved.html')
saved = data_of('saved.html')
check({**saved, 'plans': saved['plans'][:1]})
near(saved['predicted_ms'], page['predicted_ms'], 'a saved plan takes what it took')
must([d['choice'] for d in saved['decisions']] == [d['choice'] for d in page['decisions']], 'and chooses what it chose')
run('report', *there, '--batch', '16', '--micro-batches', '4', '-o', 'passes.html')
check(data_of('passes.html'))

# In stages: every place has its lanes.
stages = ['--model', tiny, '--machine', 'a100-pcie-4', '--seq', '16', '--layers', '4', '--batch', '8']
stages += ['--stages', '2', '--micro-batches', '4']  # which a saved plan says itself
run('plan', *stages, '--summary', 'stages.json', '--save-plan', 'stages_plan.json')
run('report', *stages, '-o', 'stages.html', '--trace', 'stages_trace.json')
said, page = json.load(open('stages.json')), data_of('stages.html')
check(page)
check_trace('stages_trace.json', page)
near(page['predicted_ms'], said['step_ms'], 'the step of stages')
near(page['timeline_ms'], said['step_ms'], 'the timeline of stages', 1e-6)
near(page['idle'], said['idle'], 'what stands idle', 1e-6)
must([p['peak_bytes'] for p in page['places']] == said['peak_bytes_of_places'], 'the memory of each place')
must({w[5] for p in page['places'] for w in p['lanes'][0]['work']} == set(range(4)), 'all micro-batches are there')
must(all(p['lanes'][2]['work'] or p['lanes'][3]['work'] for p in page['places']), 'places send or receive')
run('report', '--plan', 'stages_plan.json', '--machine', 'a100-pcie-4', '-o', 'saved_stages.html')
saved = data_of('saved_stages.html')
check({**saved, 'plans': saved['plans'][:1]})
near(saved['predicted_ms'], page['predicted_ms'], 'a saved plan in stages takes what it took')
must([d['choice'] for d in saved['decisions']] == [d['choice'] for d in page['decisions']], 'and chooses what it chose')

# Measured ranks: what the step is made of takes as long as it does.
here = ['--model', tiny, '--batch', '4', '--seq', '16', '--mesh', 'data=2']
run('report', *here, '--profile', 'table.json', '-o', 'measured.html', '--trace', 'measured_trace.json')
page = data_of('measured.html')
must(not page['in_order'] and page['memory_axis'] == 'instructions', 'nothing is said to happen at a time')
check(page)
check_trace('measured_trace.json', page)
near(page['timeline_ms'], page['predicted_ms'], 'the measured step')
near(sum(d['parts_ms'] + d['edges_ms'] for d in page['decisions']), page['additive_ms'], 'measured sums of parts')
print('the data of reports add up' if failed == 0 else f'{failed} failed')
sys.exit(failed != 0)

// The script of a report's page: segments, blocks, decisions; and one decision in detail.
#pragma once

namespace cfp::inline v0_1::detail {

inline constexpr char page_model[] = R"js(
const busy_all = data.places.reduce((n, p) => n + p.busy_ms, 0);
const most_ms = Math.max(1e-12, ...data.decisions.map(d => d.operators_ms + d.collectives_ms));
const takes = d => d.operators_ms + d.collectives_ms;
const works = d => data.in_order ? d.operators_ms : takes(d);  // what collectives take is beside that
const is_idle = d => takes(d) < 5e-3 && d.sent_bytes === 0 && (d.kind !== 'part' || d.choices < 2);
const kinds = {part: 'what a part of a block splits', rest: 'how a weight of several parts rests', forms:
  'the forms a tensor is held in for its readers', placement: 'how a gradient is added up', 'all weights':
  'the norm of all gradients'};

function share_bar(d) {
  const wide = x => 'width:' + (100 * x / most_ms) + '%';
  return make('span', {class: 'share', 'aria-hidden': 'true'},
    make('i', {style: wide(d.operators_ms) + ';background:var(--forward)'}),
    make('i', {style: wide(d.collectives_ms) + ';background:var(--sent)'}));
}
function decision_row(n) {
  const d = data.decisions[n];
  return make('button', {class: 'row', 'data-decision': n, 'aria-pressed': 'false', onclick: () => select(n, false)},
    make('span', {}, d.label + (d.count > 1 ? ' ×' + d.count : '')), make('code', {}, d.choice), share_bar(d),
    make('span', {class: 'num'}, ms(works(d))));
}
function rows_of(numbers) {
  const shown = numbers.filter(n => !is_idle(data.decisions[n])), rest = numbers.filter(n => !shown.includes(n));
  const out = shown.map(decision_row);
  if (rest.length) out.push(make('details', {class: 'more'}, make('summary', {}, rest.length +
    ' more that take next to nothing'), ...rest.map(decision_row)));
  return out;
}
function segment_box(s, n, open) {
  const all = s.blocks.flatMap(b => b.decisions).concat(s.shared);
  const time = all.reduce((sum, d) => sum + works(data.decisions[d]), 0);
  const box = make('details', {class: 'segment', 'data-segment': n}, make('summary', {},
    make('b', {}, s.label), s.count > 1 ? make('span', {class: 'times'}, '×' + s.count) : null,
    data.places.length > 1 ? make('span', {class: 'soft'}, 'stage ' + s.stage) : null,
    make('span', {class: 'num'}, ms(time))));
  for (const b of s.blocks)
    if (b.decisions.length) box.append(make('div', {class: 'block'}, make('div', {class: 'soft'}, 'block ' + b.label),
      ...rows_of(b.decisions)));
  if (s.shared.length) box.append(make('div', {class: 'block'}, make('div', {class: 'soft'},
    'tensors that several parts read'), ...rows_of(s.shared)));
  box.open = open;
  return box;
}

function bar_cell(value, most) {
  const share = value === null || !(most > 0) ? 0 : Math.min(1, Math.abs(value) / most);
  return make('div', {class: 'share', 'aria-hidden': 'true'}, make('i', {style: 'width:' + 100 * share +
    '%;background:var(--' + (value < 0 ? 'found' : 'backward') + ')'}));
}
function alternatives(d) {
  if (!d.others.length) return [make('h3', {}, 'What else it could be'), make('p', {class: 'soft'}, d.choices < 2 ?
    'It has no other choice.' : 'Nothing else is known that goes with the rest of the plan.')];
  const known = d.others.some(o => o.best_ms !== null), alone = d.others.some(o => o.alone_ms !== null || !o.possible);
  const bytes_known = d.others.some(o => o.memory_bytes !== null);
  const most = Math.max(...d.others.map(o => Math.abs((known ? o.best_ms : o.alone_ms) || 0)));
  const column = (shown, tag, text) => shown ? make(tag, {class: 'num'}, text()) : null;
  const cells = (tag, best, stay, memory) => [column(known, tag, best), column(alone, tag, stay),
    column(bytes_known, tag, memory)];
  const head = make('tr', {}, make('th', {}), ...cells('th', () => 'others adapt', () => 'others stay',
    () => 'memory'));
  const rows = o => [make('tr', {class: 'named'}, make('td', {colspan: 4}, make('code', {}, o.choice))),
    make('tr', {}, make('td', {}, bar_cell(known ? o.best_ms : o.alone_ms, most)), ...cells('td',
      () => (o.proven ? '' : '≥ ') + more_ms(o.best_ms), () => o.possible ? more_ms(o.alone_ms) : 'impossible',
      () => more_bytes(o.memory_bytes)))];
  return [make('h3', {}, 'What else it could be'), make('p', {class: 'hint'}, 'Of ' + count(d.choices) + ' choices' +
    (d.count > 1 ? ', for one of the ' + d.count : '') + '; what a step takes more, by sums of parts: all others at ' +
    'their best for it' + (bytes_known ? ', whatever memory they take' : '') + (alone ? ', or as they are.' : '.')),
    make('div', {class: 'scroll'}, make('table', {id: 'alternatives'}, head, ...d.others.flatMap(rows)))];
}

function details_of(d) {
  const facts = [['chosen', make('code', {}, d.choice)], ['operators', ms(d.operators_ms) + ' (' +
    percent(busy_all > 0 ? d.operators_ms / busy_all : 0) + ' of all)'], ['communication', ms(d.collectives_ms)]];
  if (!data.in_order) facts[1][0] = 'itself', facts[2][0] = 'conversions to it';
  if (d.parts_ms || d.edges_ms) facts.push(['by sums of parts', ms(d.parts_ms) + ' and ' + ms(d.edges_ms) +
    ' for conversions']);
  if (d.memory_bytes) facts.push(['keeps, by sums of parts', bytes(d.memory_bytes)]);
  facts.push(['each rank sends', d.sent_bytes ? bytes(d.sent_bytes) : 'nothing']);
  for (const [what, [calls, size]] of Object.entries(d.sent)) facts.push([what.replace(/_/g, '-'),
    several(calls, 'call') + ', ' + bytes(size)]);
  return make('dl', {}, ...facts.flatMap(([what, value]) => [make('dt', {}, what), make('dd', {}, value)]));
}
function select(n, from_timeline) {
  const d = data.decisions[n], again = timeline.selected === n && !from_timeline;
  for (const row of document.querySelectorAll('.row')) row.setAttribute('aria-pressed', !again &&
    row.dataset.decision === String(n) ? 'true' : 'false');
  timeline.selected = again ? -1 : n;
  draw_soon();
  if (again) return no_details();
  const row = document.querySelector('.row[data-decision="' + n + '"]');
  for (let box = row && row.closest('details'); box; box = box.parentElement.closest('details')) box.open = true;
  if (from_timeline && row && innerWidth > 900) row.scrollIntoView({block: 'nearest'});
  at('details').replaceChildren(make('h2', {}, d.label + (d.count > 1 ? ' ×' + d.count : '')),
    make('p', {class: 'hint'}, kinds[d.kind] + (d.count > 1 ? '; times and bytes are of all ' + d.count : '')),
    details_of(d), ...alternatives(d));
  if (innerWidth <= 900) at('details').scrollIntoView({block: 'start', behavior: 'smooth'});
}
function no_details() {
  const longest = data.decisions.map((d, n) => [works(d), n]).sort((a, b) => b[0] - a[0]).slice(0, 8);
  at('details').replaceChildren(make('h2', {}, 'A decision'), make('p', {class: 'hint'},
    'Click one, here, in the model or in the timeline, to see what it takes and what else it could be. The longest:'),
    ...longest.map(([, n]) => make('button', {class: 'row', style: 'grid-template-columns:minmax(0,1fr) 76px',
      onclick: () => select(n, false)}, make('span', {}, data.decisions[n].label), make('span', {class: 'num'},
      ms(works(data.decisions[n]))))));
}
function show_model() {
  const longest = Math.max(...data.segments.map(s => s.count));
  let opened = false;
  at('model').append(...data.segments.map((s, n) => {
    const open = !opened && s.count === longest;
    opened = opened || open;
    return segment_box(s, n, open);
  }));
  at('model-hint').textContent = several(data.segments.reduce((n, s) => n + s.count, 0), 'segment') +
    ' of parallel blocks, equal ones that choose alike once (×). A choice says what each mesh axis splits. ' +
    (data.in_order ? 'Times are of operators; bars are these (blue) and collectives (pink), most of them beside.' :
      'Bars are parts by themselves (blue) and conversions to them (pink), times both.');
  no_details();
}
)js";

}  // namespace cfp::inline v0_1::detail

// The script of a report's page: what memory holds over the step.
#pragma once

namespace cfp::inline v0_1::detail {

inline constexpr char page_memory[] = R"js(
const chart = {wide: 1180, high: 270, left: 66, right: 12, top: 16, bottom: 34};
function chart_size() {
  const phone = innerWidth < 700;
  Object.assign(chart, {wide: phone ? 420 : 1180, high: phone ? 230 : 270});
}

// Areas on top of each other, the first kind lowest; between two points memory is as at the first of them.
function memory_areas(points, kinds, x, y) {
  const base = points.map(() => 0), out = [];
  for (let k = 0; k < kinds.length; ++k) {
    const top = base.map((b, i) => b + points[i][k + 1]);
    if (top.some((t, i) => t > base[i])) {
      const edge = (line, back) => {
        const path = [];
        for (let i = 0; i < points.length; ++i) {
          path.push([x(points[i][0]), y(line[i])]);
          if (i + 1 < points.length) path.push([x(points[i + 1][0]), y(line[i])]);
        }
        if (back) path.reverse();
        return path.map(p => p[0].toFixed(2) + ' ' + p[1].toFixed(2)).join('L');
      };
      out.push(draw('path', {d: 'M' + edge(top) + 'L' + edge(base, true) + 'Z', fill: 'var(--m' + k + ')',
                             'data-kind': kinds[k]}));
    }
    for (let i = 0; i < base.length; ++i) base[i] = top[i];
  }
  return out;
}
function memory_axes(most, whole, x, y) {
  const out = [], gib = most >= 1 << 30 ? 1 << 30 : most >= 1 << 20 ? 1 << 20 : 1 << 10;
  for (const t of ticks(most / gib, 6)) out.push(draw('line', {x1: chart.left, x2: chart.wide - chart.right,
    y1: y(t * gib), y2: y(t * gib), stroke: 'var(--line)'}), draw('text', {x: chart.left - 8, y: y(t * gib) + 4,
    'text-anchor': 'end'}, t === 0 ? '0' : bytes(t * gib)));
  for (const t of ticks(whole, chart.wide > 600 ? 9 : 4)) out.push(draw('text', {x: x(t), y: chart.high - 14,
    'text-anchor': 'middle'}, data.memory_axis === 'ms' ? digits(t, 4) + ' ms' : count(t)));
  return out;
}
function memory_line(value, text, ink, x, y, dashes) {
  const right = chart.wide - chart.right;
  return [draw('line', {x1: chart.left, x2: right, y1: y(value), y2: y(value), stroke: ink, 'stroke-width': 1.5,
                        'stroke-dasharray': dashes}),
          draw('text', {x: right, y: y(value) - 4, 'text-anchor': 'end', style: 'fill:' + ink}, text)];
}
function memory_chart(place) {
  chart_size();
  const points = place.memory, limit = data.limit_bytes, kinds = data.memory_kinds;
  if (!points.length) return make('p', {class: 'soft'}, 'Nothing is known of it.');
  const whole = points[points.length - 1][0] || 1;
  const near = limit && limit < 4 * place.peak_bytes, most = 1.06 * Math.max(place.peak_bytes, near ? limit : 0);
  const x = t => chart.left + (chart.wide - chart.left - chart.right) * t / whole;
  const y = b => chart.high - chart.bottom - (chart.high - chart.top - chart.bottom) * b / most;
  const picture = draw('svg', {viewBox: '0 0 ' + chart.wide + ' ' + chart.high, role: 'img',
    'aria-label': 'memory by kind, at most ' + bytes(place.peak_bytes)}, ...memory_axes(most, whole, x, y),
    ...memory_areas(points, kinds, x, y), ...memory_line(place.peak_bytes, 'planned: ' + bytes(place.peak_bytes),
      'var(--ink)', x, y, '1 0'), ...(near ? memory_line(limit, 'limit: ' + bytes(limit), 'var(--bad)', x, y, '6 4') :
      []));
  const cursor = draw('line', {y1: chart.top, y2: chart.high - chart.bottom, stroke: 'var(--ink)',
                               visibility: 'hidden'});
  picture.append(cursor);
  picture.addEventListener('pointermove', e => {
    const box = picture.getBoundingClientRect(), t = ((e.clientX - box.left) * chart.wide / box.width - chart.left) /
      (chart.wide - chart.left - chart.right) * whole;
    if (t < 0 || t > whole) return hide_tip();
    let i = points.findIndex(p => p[0] > t);
    i = i < 0 ? points.length - 1 : Math.max(0, i - 1);
    cursor.setAttribute('x1', x(t));
    cursor.setAttribute('x2', x(t));
    cursor.setAttribute('visibility', 'visible');
    show_tip(e, (data.memory_axis === 'ms' ? 'at ' + ms(points[i][0]) : 'at instruction ' + count(points[i][0])) +
      kinds.map((k, n) => points[i][n + 1] ? '\n' + k + ': ' + bytes(points[i][n + 1]) : '').reverse().join(''));
  });
  picture.addEventListener('pointerleave', () => { hide_tip(); cursor.setAttribute('visibility', 'hidden'); });
  return picture;
}

function show_memory() {
  const keys = at('memory-keys'), held = at('memory');
  const shown = data.memory_kinds.map((kind, k) => data.places.some(p => p.memory.some(m => m[k + 1] > 0)));
  keys.append(...data.memory_kinds.map((kind, k) => shown[k] ? make('span', {class: 'key'}, make('i', {style:
    'background:var(--m' + k + ')'}), kind) : null).filter(x => x));
  let now = data.places.reduce((a, b) => a.peak_bytes >= b.peak_bytes ? a : b);
  const again = () => held.replaceChildren(memory_chart(now));
  if (data.places.length > 1) {
    const changes = e => { now = data.places[e.target.value], again(); };
    const choose = make('select', {'aria-label': 'place', onchange: changes},
      ...data.places.map((p, n) => make('option', {value: n}, p.label + ', ' + bytes(p.peak_bytes))));
    choose.value = data.places.indexOf(now);
    keys.append(make('span', {class: 'right'}, choose));
  }
  at('memory-hint').textContent = (data.memory_axis === 'ms' ?
    'Of a device, when operators come to each instruction. ' :
    'Of a rank, from one instruction of its program to the next. ') +
    'What comes and goes has its places in one arena; what of it nothing has at the moment is "unused". ' +
    '"Passing" is what forward or backward makes and reads soon.' +
    (data.limit_bytes >= 4 * now.peak_bytes ? ' The limit, ' + bytes(data.limit_bytes) + ', is far above.' : '');
  again();
  addEventListener('resize', again);
}
)js";

}  // namespace cfp::inline v0_1::detail

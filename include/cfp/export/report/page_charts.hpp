// The script of a report's page: other plans, and what memory is worth.
#pragma once

namespace cfp::inline v0_1::detail {

inline constexpr char page_charts[] = R"js(
const mesh_short = mesh => mesh.replace(/^x=(\d+)/, '$1').replace(/,[yz]=/g, '×');
function plan_row(p, most) {
  const name = make('td', {}, p.plan, ' ', make('span', {class: 'soft'}, mesh_short(p.mesh)), p.fits ? null :
    make('span', {class: 'tag bad', style: 'margin-left:6px'}, 'does not fit'), p.found && p.kind !== 'found' ?
    make('span', {class: 'tag', style: 'margin-left:6px'}, 'taken') : null);
  const ink = p.found ? 'found' : p.fits ? 'forward' : 'm6', wide = 100 * p.step_ms / most;
  const bar = make('div', {class: 'share'}, make('i', {style: 'width:' + wide + '%;background:var(--' + ink + ')'}));
  const number = text => make('td', {class: 'num'}, text);
  return make('tr', {class: p.found ? 'found' : ''}, name, make('td', {style: 'width:26%'}, bar), number(ms(p.step_ms)),
    number(digits(p.step_ms / data.predicted_ms, 4) + '×'), number(bytes(p.peak_bytes)));
}
function show_plans() {
  const shown = 14, most = Math.max(...data.plans.slice(0, shown).map(p => p.step_ms));
  const head = () => make('tr', {}, make('th', {}, 'plan, mesh'), make('th', {}), make('th', {class: 'num'}, 'step'),
    make('th', {class: 'num'}, 'to found'), make('th', {class: 'num'}, 'memory'));
  const table = some => make('div', {class: 'scroll'}, make('table', {}, head(), ...some.map(p => plan_row(p,
    Math.max(most, p.step_ms)))));
  at('plans').append(table(data.plans.slice(0, shown)));
  if (data.plans.length > shown) at('plans').append(make('details', {class: 'more'}, make('summary', {},
    data.plans.length - shown + ' more'), table(data.plans.slice(shown))));
  at('plans-hint').textContent = 'All priced alike; the found one first, then the fastest.' + (data.plans.length < 2 ?
    ' None was compared.' : '');
}

function curve_frame(all) {
  const size = {wide: 600, high: 330, left: 70, right: 18, top: 14, bottom: 46};
  const low = Math.min(...all.map(p => p.step_ms)), high = Math.max(...all.map(p => p.step_ms));
  const room = Math.max((high - low) * 0.08, high * 0.005), from = Math.max(0, low - room), to = high + room;
  const most = 1.05 * Math.max(...all.map(p => p.peak_bytes));
  const least = 0.95 * Math.min(...all.map(p => p.peak_bytes));
  const x = b => size.left + (size.wide - size.left - size.right) * (b - least) / (most - least || 1);
  const y = t => size.high - size.bottom - (size.high - size.top - size.bottom) * (t - from) / (to - from);
  const out = draw('svg', {viewBox: '0 0 ' + size.wide + ' ' + size.high, role: 'img',
                           'aria-label': 'step time by memory of a device'});
  const unit = most >= 1 << 30 ? 1 << 30 : most >= 1 << 20 ? 1 << 20 : 1 << 10;
  const step = ticks((most - least) / unit, 5)[1], step_ms = ticks(to - from, 5)[1];
  const text = (x, y, anchor, says) => out.append(draw('text', {x, y, 'text-anchor': anchor}, says));
  for (let t = Math.ceil(least / unit / step) * step; t <= most / unit; t += step)
    text(x(t * unit), size.high - size.bottom + 18, 'middle', bytes(t * unit));
  for (let t = Math.ceil(from / step_ms) * step_ms; t <= to; t += step_ms) {
    out.append(draw('line', {x1: size.left, x2: size.wide - size.right, y1: y(t), y2: y(t), stroke: 'var(--line)'}));
    text(size.left - 8, y(t) + 4, 'end', ms(t));
  }
  text((size.wide + size.left) / 2, size.high - 6, 'middle', 'memory of a device');
  return {out, x, y, size, least, most};
}
function show_curve() {
  const curve = data.curve, found = data.plans.find(p => p.found);
  if (curve.length < 2) {
    at('curve-hint').textContent = 'Other limits of memory were not planned for.';
    return;
  }
  const on_curve = p => curve.some(c => c.step_ms === p.step_ms && c.peak_bytes === p.peak_bytes);
  const slowest = 1.3 * Math.max(...curve.map(p => p.step_ms));  // what is far off says nothing of the curve
  const by_parts = curve.every(p => p.plan === 'by sums of parts');
  const others = by_parts ? [] : data.plans.filter(p => !on_curve(p) && p.step_ms <= slowest);
  const {out, x, y, size, least, most} = curve_frame([...curve, ...others, ...(by_parts ? [] : [found])]);
  const limit = data.limit_bytes;
  if (limit > least && limit < most) out.append(draw('line', {x1: x(limit), x2: x(limit), y1: size.top,
    y2: size.high - size.bottom, stroke: 'var(--bad)', 'stroke-dasharray': '6 4'}), draw('text', {x: x(limit) - 5,
    y: size.top + 10, 'text-anchor': 'end', style: 'fill:var(--bad)'}, 'limit'));
  const steps = [...curve].sort((a, b) => a.peak_bytes - b.peak_bytes);
  let path = 'M' + x(steps[0].peak_bytes) + ' ' + y(steps[0].step_ms);
  for (const p of steps.slice(1)) path += 'H' + x(p.peak_bytes) + 'V' + y(p.step_ms);
  out.append(draw('path', {d: path, fill: 'none', stroke: 'var(--accent)', 'stroke-width': 1.5}));
  const point = (p, kind) => {
    const [r, ink] = {found: [6, 'found'], curve: [4.5, 'accent'], other: [3, 'm6']}[kind];
    const dot = draw('circle', {cx: x(p.peak_bytes), cy: y(p.step_ms), r, fill: 'var(--' + ink + ')', class: kind});
    const says = p.plan + ', ' + p.mesh + '\n' + ms(p.step_ms) + ', ' + bytes(p.peak_bytes) + (p.fits ? '' :
      '\nmore than there is');
    for (const [event, told] of Object.entries(tipped(says))) dot.addEventListener(event.slice(2), told);
    return dot;
  };
  out.append(...others.map(p => point(p, 'other')), ...curve.map(p => point(p, 'curve')));
  if (found && !by_parts) out.append(point(found, 'found'));
  at('curve').append(out);
  at('curve-hint').textContent = by_parts ?
    'The fastest plan within one limit of memory after another, by sums of parts.' :
    'Plans that no other beats in both time and memory (blue), within one limit after another; others are grey, ' +
    'the plan taken is green.';
}
)js";

}  // namespace cfp::inline v0_1::detail

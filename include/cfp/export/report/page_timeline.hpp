// The script of a report's page: what the streams do when, to be looked at from near and far.
#pragma once

namespace cfp::inline v0_1::detail {

inline constexpr char page_timeline[] = R"js(
const phase_colours = ['forward', 'backward', 'update', 'again'];
const timeline = {canvas: at('timeline'), from: 0, to: data.timeline_ms || 1, whole: data.timeline_ms || 1, rows: [],
                  left: 104, top: 24, selected: -1};
const work_colour = (lane, w) => lane > 1 ? 'crosses' : lane === 1 ? 'sent' : phase_colours[w[4]];

function timeline_rows() {
  const row = innerWidth < 700 ? 17 : 20;
  let y = timeline.top;
  timeline.rows = [];
  for (const place of data.places) {
    const lanes = place.lanes.map((l, n) => ({...l, n})).filter(l => l.n < 2 || l.work.length);
    if (data.places.length > 1) y += 15;
    for (const lane of lanes) {
      timeline.rows.push({place, lane: lane.n, label: lane.label, work: lane.work, y, high: row});
      y += row + 3;
    }
  }
  timeline.left = innerWidth < 700 ? 78 : 104;
  return y + 4;
}

// The first piece of work that ends behind a moment.
function first_work(work, moment) {
  let low = 0, high = work.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (work[middle][0] + work[middle][1] <= moment) low = middle + 1; else high = middle;
  }
  return low;
}
const timeline_scale = () => (timeline.canvas.clientWidth - timeline.left - 8) / (timeline.to - timeline.from);
const name_of = w => w[2] >= 0 ? data.names[w[2]] : w[3] >= 0 ? 'work of ' + data.decisions[w[3]].label :
  'other work';

function draw_axis(pen, wide, high, scale) {
  pen.strokeStyle = colour('line');
  pen.fillStyle = colour('soft');
  pen.textAlign = 'center';
  const span = timeline.to - timeline.from, about = Math.max(3, Math.floor(wide / 130));
  const step = ticks(span, about)[1] || span;
  for (let t = Math.ceil(timeline.from / step) * step; t <= timeline.to; t += step) {
    const x = timeline.left + (t - timeline.from) * scale;
    pen.beginPath();
    pen.moveTo(x + 0.5, timeline.top - 5);
    pen.lineTo(x + 0.5, high);
    pen.stroke();
    const exact = Math.max(3, Math.ceil(Math.log10(Math.max(t, step) / step)) + 2);
    pen.fillText(t < step / 2 ? '0' : digits(t, exact) + ' ms', Math.min(x, wide - 26), timeline.top - 10);
  }
}
// Work that is narrower than a pixel is drawn as one with its neighbours.
function draw_row(pen, row, scale, colours) {
  let painted = -1, last = '';
  for (let i = first_work(row.work, timeline.from); i < row.work.length && row.work[i][0] < timeline.to; ++i) {
    const w = row.work[i], x = timeline.left + Math.max(0, w[0] - timeline.from) * scale;
    const end = timeline.left + Math.min(timeline.to - timeline.from, w[0] + w[1] - timeline.from) * scale;
    const chosen = timeline.selected < 0 || timeline.selected === w[3], name = work_colour(row.lane, w);
    if (end < painted + 0.5 && name === last) continue;
    pen.globalAlpha = chosen ? 1 : 0.22;
    pen.fillStyle = colours[name];
    const wide = Math.max(0.6, end - x - (end - x > 4 ? 1 : 0));
    pen.fillRect(x, row.y, wide, row.high);
    painted = x + wide;
    last = name;
    if (wide < 34) continue;
    pen.fillStyle = '#10151c';
    pen.textAlign = 'left';
    pen.save();
    pen.beginPath();
    pen.rect(x, row.y, wide - 3, row.high);
    pen.clip();
    const brief = name_of(w).replace(/^[^ ,]*?\.(\d+)\./, '$1 ');  // from the layer's number on
    pen.fillText(brief, x + 4, row.y + row.high - 5.5);
    pen.restore();
  }
  pen.globalAlpha = 1;
}

function draw_timeline() {
  const high = timeline_rows(), ratio = devicePixelRatio || 1, wide = timeline.canvas.clientWidth;
  timeline.canvas.style.height = high + 'px';
  timeline.canvas.width = Math.round(wide * ratio);
  timeline.canvas.height = Math.round(high * ratio);
  const pen = timeline.canvas.getContext('2d');
  pen.scale(ratio, ratio);
  pen.font = '11.5px system-ui, sans-serif';
  const scale = timeline_scale();
  draw_axis(pen, wide, high, scale);
  const colours = {};
  for (const name of [...phase_colours, 'sent', 'crosses']) colours[name] = colour(name);
  let place = null;
  for (const row of timeline.rows) {
    pen.fillStyle = colour('track');
    pen.fillRect(timeline.left, row.y, wide - timeline.left - 8, row.high);
    draw_row(pen, row, scale, colours);
    pen.fillStyle = colour('soft');
    pen.textAlign = 'left';
    pen.fillText(row.label, 0, row.y + row.high - 5.5);
    if (data.places.length > 1 && row.place !== place) pen.fillText(row.place.label, timeline.left, row.y - 4);
    place = row.place;
  }
  timeline.canvas.dataset.from = timeline.from;
  timeline.canvas.dataset.to = timeline.to;
  at('window').textContent = ms(timeline.to - timeline.from) + ' of ' + ms(timeline.whole);
}

let drawing = 0;
const draw_soon = () => { cancelAnimationFrame(drawing); drawing = requestAnimationFrame(draw_timeline); };
function look(from, span) {
  span = Math.max(timeline.whole * 1e-5, Math.min(timeline.whole, span));
  timeline.from = Math.max(0, Math.min(timeline.whole - span, from));
  timeline.to = timeline.from + span;
  draw_soon();
}
// Nearer (times < 1) or farther, what is at a moment staying where it is.
function zoom(times, moment) {
  const span = Math.max(timeline.whole * 1e-5, Math.min(timeline.whole, (timeline.to - timeline.from) * times));
  look(moment - (moment - timeline.from) * span / (timeline.to - timeline.from), span);
}
const middle = () => (timeline.from + timeline.to) / 2;
const moment_at = x => timeline.from + (x - timeline.canvas.getBoundingClientRect().left - timeline.left) /
  timeline_scale();

function work_at(event) {
  const box = timeline.canvas.getBoundingClientRect(), y = event.clientY - box.top, moment = moment_at(event.clientX);
  const row = timeline.rows.find(r => y >= r.y && y <= r.y + r.high);
  if (!row || event.clientX - box.left < timeline.left) return null;
  const near = 1.5 / timeline_scale(), i = first_work(row.work, moment - near);
  const w = row.work[i];
  return w && w[0] <= moment + near ? {row, w} : null;
}
function tell_work(event) {
  const found = work_at(event);
  if (!found) return hide_tip();
  const {row, w} = found, d = w[3] >= 0 ? data.decisions[w[3]] : null;
  show_tip(event, name_of(w) + '\n' + (data.in_order ? data.phases[w[4]] + (data.micro_batches > 1 ? ', micro-batch ' +
    w[5] : '') + ', ' : '') + ms(w[1]) + ' from ' + ms(w[0]) + ', ' + row.place.label +
    (d ? '\n' + d.label + ': ' + d.choice : ''));
}

function listen_to_timeline() {
  const canvas = timeline.canvas, held = new Map();
  let moved = 0;
  canvas.addEventListener('wheel', e => {
    e.preventDefault();
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) look(timeline.from + e.deltaX / timeline_scale(),
                                                      timeline.to - timeline.from);
    else zoom(Math.pow(1.0018, e.deltaY), moment_at(e.clientX));
  }, {passive: false});
  canvas.addEventListener('pointerdown', e => { held.set(e.pointerId, e.clientX), moved = 0; });
  canvas.addEventListener('pointermove', e => {
    if (!held.has(e.pointerId)) return tell_work(e);
    hide_tip();
    const before = held.get(e.pointerId), others = [...held].filter(([id]) => id !== e.pointerId);
    moved += Math.abs(e.clientX - before);
    if (moved > 3 && !canvas.hasPointerCapture(e.pointerId)) canvas.setPointerCapture(e.pointerId);
    held.set(e.pointerId, e.clientX);
    const span = timeline.to - timeline.from;
    if (!others.length) return look(timeline.from - (e.clientX - before) / timeline_scale(), span);
    const other = others[0][1], apart = Math.max(8, Math.abs(e.clientX - other));
    zoom(Math.max(8, Math.abs(before - other)) / apart, moment_at((e.clientX + other) / 2));
  });
  for (const ends of ['pointerup', 'pointercancel', 'pointerleave']) canvas.addEventListener(ends, e => {
    const found = ends === 'pointerup' && held.has(e.pointerId) && moved <= 3 ? work_at(e) : null;
    held.delete(e.pointerId);
    if (ends === 'pointerleave') hide_tip();
    if (found && found.w[3] >= 0) select(found.w[3], true);
  });
  canvas.addEventListener('dblclick', () => look(0, timeline.whole));
  canvas.addEventListener('keydown', e => {
    const span = timeline.to - timeline.from;
    const keys = {ArrowLeft: () => look(timeline.from - span / 5, span), '+': () => zoom(0.6, middle()),
                  ArrowRight: () => look(timeline.from + span / 5, span), '=': () => zoom(0.6, middle()),
                  '-': () => zoom(1 / 0.6, middle()), Home: () => look(0, timeline.whole)};
    if (keys[e.key]) e.preventDefault(), keys[e.key]();
  });
  at('nearer').onclick = () => zoom(0.5, middle());
  at('farther').onclick = () => zoom(2, middle());
  at('whole').onclick = () => look(0, timeline.whole);
  addEventListener('resize', draw_soon);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw_soon);
}

function start_timeline() {
  const shown = new Set();
  for (const p of data.places) p.lanes.forEach((l, n) => l.work.forEach(w => shown.add(work_colour(n, w))));
  const called = {forward: 'forward', backward: 'backward', update: 'update', again: 'forward again',
                  sent: 'collectives', crosses: 'between places'};
  if (!data.in_order) called.forward = 'parts', called.sent = 'conversions';
  at('phases').append(...Object.keys(called).filter(n => shown.has(n)).map(n => make('span', {class: 'key'},
    make('i', {style: 'background:var(--' + n + ')'}), called[n])));
  const apart = Math.abs(data.timeline_ms - data.predicted_ms) > 1e-6 * data.predicted_ms;
  at('timeline-hint').textContent = (data.in_order ?
    'Streams work beside each other; where operators stand still they wait.' :
    'What the step is made of, by measurement, not when it happens: segments as they were run whole, each shared ' +
    'out among its parts and the conversions between them.') + (apart ? ' All micro-batches together take ' +
    ms(data.timeline_ms) + ' here; planned were ' + ms(data.predicted_ms) + ', by programs of fewer of them.' : '') +
    (data.joined ? ' Neighbours of one decision are drawn as one.' : '') +
    ' Wheel or pinch to zoom, drag to move, click to see the decision.';
  listen_to_timeline();
  draw_timeline();
}
)js";

}  // namespace cfp::inline v0_1::detail

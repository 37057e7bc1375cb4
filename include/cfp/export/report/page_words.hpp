// The script of a report's page: its data, numbers with units, elements; what stands above all.
#pragma once

namespace cfp::inline v0_1::detail {

inline constexpr char page_words[] = R"js('use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const at = id => document.getElementById(id);
const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

// An element with attributes and children; what is on* listens.
function make(tag, attributes, ...children) {
  const out = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {}))
    if (key.startsWith('on')) out.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) out.setAttribute(key, value);
  out.append(...children.filter(c => c !== null && c !== undefined));
  return out;
}
const svg_space = 'http://www.w3.org/2000/svg';
function draw(tag, attributes, ...children) {
  const out = document.createElementNS(svg_space, tag);
  for (const [key, value] of Object.entries(attributes || {})) out.setAttribute(key, value);
  out.append(...children);
  return out;
}

const digits = (x, n) => Number(x.toPrecision(n)).toLocaleString('en', {maximumFractionDigits: 6, useGrouping: false});
function ms(x) {
  if (x === null || x === undefined) return 'not known';
  const size = Math.abs(x);
  if (size >= 10000) return digits(x / 1000, 4) + ' s';
  if (size >= 0.1 || size === 0) return digits(x, size >= 1000 ? 5 : 4) + ' ms';
  return digits(1000 * x, 3) + ' µs';
}
const more_ms = x => x === null ? 'not known' : (x < 0 ? '−' : '+') + ms(Math.abs(x));
function bytes(x) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0, size = Math.abs(x);
  for (; size >= 1024 && unit + 1 < units.length; ++unit) size /= 1024;
  return (x < 0 ? '−' : '') + digits(size, 4) + ' ' + units[unit];
}
const more_bytes = x => x === null ? 'not known' : x === 0 ? 'the same' : (x > 0 ? '+' : '') + bytes(x);
function rate(x, unit) {
  const units = ['', 'k', 'M', 'G', 'T', 'P'];
  let n = 0;
  for (; x >= 1000 && n + 1 < units.length; ++n) x /= 1000;
  return digits(x, 4) + ' ' + units[n] + unit;
}
const percent = x => digits(100 * x, 3) + '%';
const count = x => x.toLocaleString('en');
const several = (n, one, many) => count(n) + ' ' + (n === 1 ? one : many || one + 's');

// Of a chart: round numbers from 0 up to `most`, about `about` of them.
function ticks(most, about) {
  if (!(most > 0)) return [0];
  const power = Math.pow(10, Math.floor(Math.log10(most / about)));
  const step = power * [1, 2, 5, 10].find(times => times * power >= 0.999 * most / about);
  const out = [];
  for (let x = 0; x <= most * 1.0001; x += step) out.push(Number(x.toPrecision(12)));
  return out;
}

const tip = at('tip');
function show_tip(event, text) {
  tip.hidden = !text;
  if (!text) return;
  tip.innerText = text;
  const wide = tip.offsetWidth, high = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - wide - 8)) + 'px';
  tip.style.top = Math.max(4, event.clientY + 18 + high > innerHeight ? event.clientY - high - 10 : event.clientY + 18)
    + 'px';
}
const hide_tip = () => { tip.hidden = true; };
const tipped = text => ({onpointermove: e => show_tip(e, text), onpointerleave: hide_tip});

function tile(name, value, ...under) {
  return make('div', {class: 'tile'}, make('span', {}, name), make('b', {}, value), ...under);
}
const under = text => make('span', {}, text);
function meter(share) {
  return make('div', {class: 'meter'}, make('i', {style: 'width:' + Math.min(100, 100 * share) + '%'}));
}

function header() {
  const [file, ...sizes] = data.model.split(' '), model = file.split('/').pop().replace(/\.json$/, '');
  document.title = model + ': a plan for ' + (data.machine.name || data.mesh);
  at('title').textContent = model + (data.machine.name ? ' on ' + data.machine.name : '');
  at('subtitle').textContent = sizes.join(' · ').replace(/=/g, ' ');
  const tiles = at('tiles');
  tiles.append(tile('a step takes', ms(data.predicted_ms), under(data.times)));
  const limit = data.limit_bytes;
  tiles.append(tile('memory of a device', bytes(data.predicted_peak_bytes),
    limit ? meter(data.predicted_peak_bytes / limit) : null,
    under(limit ? percent(data.predicted_peak_bytes / limit) + ' of ' + bytes(limit) +
      (data.predicted_peak_bytes > limit ? ': does not fit' : '') : 'no limit')));
  const devices = (data.axes || []).reduce((n, a) => n * a.size, 1);
  tiles.append(tile('mesh', data.mesh.replace(/=/g, ' ').replace(/,/g, ' × '), under(several(devices, 'device') +
    ', the last axis innermost')));
  const busy = data.places.reduce((n, p) => n + p.busy_ms, 0) / data.places.length;
  if (data.in_order) tiles.append(tile('operators work', percent(1 - data.idle), meter(1 - data.idle),
    under(ms(busy) + ' of the step' + (data.places.length > 1 ? ', on average' : ''))));
  tiles.append(tile('training', data.type, under('by ' + data.optimizer + (data.micro_batches > 1 ? ', ' +
    data.micro_batches + ' micro-batches' : '') + (data.schedule ? ', ' + data.schedule : ''))));
  const rivals = data.plans.filter(p => p.kind !== 'found' && !p.found && p.fits);
  if (rivals.length) {
    const best = rivals.reduce((a, b) => a.step_ms < b.step_ms ? a : b);
    tiles.append(tile('the best other plan takes', digits(best.step_ms / data.predicted_ms, 4) + '×',
      under(best.plan + ': ' + ms(best.step_ms))));
  }
  at('footer').textContent = [several(data.operators, 'operator') + ' with those of training',
    several(data.parameters, 'parameter'), data.kernels, data.notes, 'made by cfp report'].filter(x => x).join(' · ');
}
)js";

}  // namespace cfp::inline v0_1::detail

// The script of a report's page: the devices, what joins them, and how the mesh lies on them. It is the last part: all
// begins here.
#pragma once

namespace cfp::inline v0_1::detail {

inline constexpr char page_machine[] = R"js(
const axes = data.axes || [];
const mesh_devices = axes.reduce((n, a) => n * a.size, 1);
function place_on_mesh(device) {
  const out = [];
  for (let a = axes.length - 1; a >= 0; --a) out.unshift(device % axes[a].size), device = Math.floor(device /
    axes[a].size);
  return out;
}
const device_name = n => axes.map((a, i) => a.name + ' ' + place_on_mesh(n)[i]).join(', ');
function device_box(n) {
  return make('div', {class: 'device', 'data-device': n, ...tipped('device ' + n + ': ' + device_name(n))},
    place_on_mesh(n).join('·'));
}
// Devices from `first` on, in the groups that levels join, the last level outermost.
function group_box(level, first) {
  if (level < 0) return device_box(first);
  const l = data.machine.levels[level];
  let unit = 1;
  for (let below = 0; below < level; ++below) unit *= data.machine.levels[below].joins;
  const box = make('div', {class: 'group'}, make('div', {class: 'soft'}, l.name));
  const most = level > 0 ? 8 : 64;
  for (let n = 0; n < l.joins && n < most && first + n * unit < mesh_devices; ++n) box.append(group_box(level - 1,
    first + n * unit));
  if (l.joins > most && first + most * unit < mesh_devices) box.append(make('span', {class: 'soft'}, '… ' + l.joins +
    ' of these'));
  return box;
}
function show_group(axis) {
  for (const box of document.querySelectorAll('.device')) {
    const here = place_on_mesh(Number(box.dataset.device));
    box.classList.toggle('on', axis >= 0 && here.every((c, a) => a === axis || c === 0));
  }
}

function mesh_side() {
  const out = make('div', {}, make('h3', {}, 'Mesh ' + data.mesh.replace(/=/g, ' ').replace(/,/g, ' × ')),
    make('p', {class: 'hint'}, 'Devices by their place along ' + axes.map(a => a.name).join(' · ') +
      '. Point at an axis to see devices that meet along it.'));
  const shows = n => ({onpointerenter: () => show_group(n), onpointerleave: () => show_group(-1)});
  const rows = axes.map((a, n) => make('tr', shows(n),
    make('td', {}, make('code', {}, a.name)), make('td', {class: 'num'}, several(a.size, 'device')),
    make('td', {}, a.along.length ? 'over ' + a.along.join(', ') : '')));
  out.append(make('table', {}, ...rows));
  const levels = data.machine.levels;
  if (levels.length) out.append(group_box(levels.length - 1, 0));
  else {
    const box = make('div', {class: 'group'});
    for (let n = 0; n < Math.min(mesh_devices, 64); ++n) box.append(device_box(n));
    out.append(box);
  }
  return out;
}
function machine_side() {
  const m = data.machine, d = m.device, source = what => m.sources && m.sources[what] ? tipped(m.sources[what]) : {};
  const out = make('div', {}, make('h3', {}, m.name || 'Ranks'));
  if (!d) return out;
  const facts = [['device', d.name, 'device.name'], ['memory of a device', bytes(d.memory_bytes), 'device.memory']];
  for (const [type, x] of Object.entries(d.product_rates)) facts.push(['products in ' + type, rate(x, 'FLOP/s'),
    'device.product_rate.' + type]);
  facts.push(['to its memory', rate(d.bandwidth, 'B/s'), 'device.bandwidth'], ['an operator at least',
    digits(d.launch_us, 3) + ' µs', 'device.launch'], ['beside collectives', digits(d.contention, 3) +
    '× as long', 'device.contention']);
  if (d.host_bandwidth) facts.push(['to memory of its host', rate(d.host_bandwidth, 'B/s'), 'device.host_bandwidth']);
  for (const l of m.levels) facts.push([l.name + ', joins ' + l.joins,
    rate(l.bandwidth, 'B/s') + ' each way, ' + l.kind, 'levels.' + l.name + '.bandwidth']);
  out.append(make('dl', {}, ...facts.flatMap(([what, value, from]) => [make('dt', source(from), what), make('dd',
    {...source(from)}, value)])));
  if (m.sources) out.append(make('p', {class: 'hint'}, 'Point at a figure to see where it is from.'));
  return out;
}

header();
start_timeline();
show_model();
show_memory();
show_plans();
show_curve();
at('machine').append(mesh_side(), machine_side());
)js";

}  // namespace cfp::inline v0_1::detail

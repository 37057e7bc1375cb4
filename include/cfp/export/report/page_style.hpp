// How a report's page looks, by light and in the dark; on a wide screen and on a phone.
#pragma once

namespace cfp::inline v0_1::detail {

// Colours that people tell apart who see few of them (after Okabe and Ito).
inline constexpr char page_style[] = R"css(
:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --card: #ffffff; --ink: #1b2430; --soft: #5b6776; --line: #dde2e9; --hover: #eef3fa;
  --accent: #0b63b6; --found: #00785a; --bad: #b3401a; --track: #eceff3;
  --forward: #5b9bd5; --backward: #e8a13a; --update: #3a9d78; --again: #a889c9; --sent: #cc6f9f; --crosses: #7f8fa3;
  --m0: #1f6fb2; --m1: #6db6e6; --m2: #e69f00; --m3: #009e73; --m4: #8a9bd0; --m5: #cc79a7; --m6: #9aa5b1;
  --m7: #e4e8ee; --m8: #5f6b79;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #11161d; --card: #1a212b; --ink: #e6ebf2; --soft: #9aa7b8; --line: #2d3846; --hover: #243040;
    --accent: #6cb4f5; --found: #4fcfa5; --bad: #f0906a; --track: #242d39;
    --forward: #4a8fcf; --backward: #cf8a28; --update: #2f8f6c; --again: #9272ba; --sent: #bb5f90; --crosses: #66778c;
    --m0: #2f7fc4; --m1: #5aa3d4; --m2: #d09000; --m3: #0a9a72; --m4: #7488c6; --m5: #b9689a; --m6: #77838f;
    --m7: #2a3441; --m8: #55616f;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", sans-serif; }
main, header, footer { max-width: 1320px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 22px; }
h1 { font-size: 24px; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 0 0 4px; }
h3 { font-size: 15px; margin: 14px 0 4px; }
p { margin: 4px 0; }
.soft, .hint { color: var(--soft); }
.hint { font-size: 13px; margin-bottom: 10px; }
.num { font-variant-numeric: tabular-nums; white-space: nowrap; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 16px 18px;
          margin: 14px 0; min-width: 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 12px; margin: 16px 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px; }
.tile b { display: block; font-size: 24px; font-weight: 650; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
.meter { height: 7px; border-radius: 4px; background: var(--track); margin: 6px 0 3px; overflow: hidden;
         display: flex; }
.meter i { display: block; height: 100%; background: var(--accent); }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) 410px; gap: 14px; align-items: start; }
.columns > section { margin: 0; }
#details { position: sticky; top: 10px; max-height: calc(100vh - 20px); overflow: auto; }
button { font: inherit; color: inherit; background: none; border: 1px solid var(--line); border-radius: 6px;
         padding: 2px 9px; cursor: pointer; }
button:hover { background: var(--hover); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.bar { display: flex; flex-wrap: wrap; gap: 6px 14px; align-items: center; margin-bottom: 8px; font-size: 13px; }
.bar .right { margin-left: auto; display: flex; gap: 6px; align-items: center; }
.key { display: inline-flex; align-items: center; gap: 5px; }
.key i { width: 11px; height: 11px; border-radius: 3px; display: inline-block; }
canvas { display: block; width: 100%; touch-action: pan-y; border-radius: 6px; cursor: grab; }
canvas:active { cursor: grabbing; }
#tip { position: fixed; z-index: 5; pointer-events: none; background: var(--ink); color: var(--card); font-size: 12.5px;
       padding: 6px 9px; border-radius: 6px; max-width: 340px; line-height: 1.4; overflow-wrap: anywhere; }
.segment { border: 1px solid var(--line); border-radius: 8px; margin: 8px 0; overflow: hidden; }
.segment > summary { padding: 8px 12px; cursor: pointer; display: flex; gap: 8px; align-items: baseline;
                     background: var(--track); }
.segment > summary b { overflow-wrap: anywhere; }
.times { background: var(--accent); color: var(--card); font-size: 12px; font-weight: 650; border-radius: 9px;
         padding: 0 8px; white-space: nowrap; }
summary .num { margin-left: auto; color: var(--soft); font-size: 13px; }
.block { padding: 3px 8px; border-top: 1px solid var(--line); }
.block > .soft { font-size: 12.5px; padding: 2px 4px 0; overflow-wrap: anywhere; }
.row { display: grid; grid-template-columns: minmax(0, 1.5fr) minmax(0, 1fr) 116px 76px; gap: 10px; width: 100%;
       align-items: center; text-align: left; border: 0; padding: 4px; border-radius: 6px; font-size: 13.5px; }
.row[aria-pressed="true"] { background: var(--hover); box-shadow: inset 3px 0 0 var(--accent); }
.row span { overflow-wrap: anywhere; }
.row code, td code { font-size: 12.5px; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
.row .num { text-align: right; }
.share { height: 9px; background: var(--track); border-radius: 5px; display: flex; overflow: hidden; }
.share i { height: 100%; display: block; }
.more > summary { font-size: 12.5px; color: var(--soft); cursor: pointer; padding: 3px 4px; }
dl { display: grid; grid-template-columns: auto 1fr; gap: 3px 14px; margin: 8px 0; font-size: 13.5px; }
dt { color: var(--soft); }
dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 12.5px; vertical-align: bottom; }
th, td { padding: 4px 8px 4px 0; border-bottom: 1px solid var(--line); }
td.num, th.num { text-align: right; }
td:first-child { overflow-wrap: anywhere; }
#alternatives tr:not(.named) td:first-child { min-width: 76px; }
tr.named td { border-bottom: 0; padding: 6px 0 0; white-space: normal; }
tr.found td { font-weight: 650; color: var(--found); }
.tag { font-size: 12px; border: 1px solid currentColor; border-radius: 8px; padding: 0 6px; white-space: nowrap; }
.tag.bad { color: var(--bad); }
.two { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 14px; }
.two > section { margin: 0; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { fill: var(--soft); font-size: 12px; }
.group { border: 1px solid var(--line); border-radius: 8px; padding: 6px; display: flex; flex-wrap: wrap; gap: 5px;
         margin: 2px; }
.group > .soft { width: 100%; font-size: 11.5px; line-height: 1.2; }
.device { border: 1px solid var(--line); background: var(--track); border-radius: 5px; font-size: 11.5px;
          padding: 3px 6px; font-variant-numeric: tabular-nums; }
.device.on { background: var(--accent); color: var(--card); border-color: var(--accent); }
footer { color: var(--soft); font-size: 13px; padding-bottom: 30px; }
@media (max-width: 900px) {
  .columns, .two { grid-template-columns: minmax(0, 1fr); }
  #details { position: static; max-height: none; scroll-margin-top: 8px; }
  main, header, footer { padding-left: 10px; padding-right: 10px; }
  .tiles { grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 8px; }
  .tile { padding: 9px 12px; }
  .tile b { font-size: 20px; }
  section { padding: 12px; }
  .row { grid-template-columns: minmax(0, 1fr) 76px; gap: 2px 8px; }
  .row .share { display: none; }
  .row code { grid-column: 1; grid-row: 2; color: var(--soft); }
}
@media print { #details { position: static; max-height: none; } }
)css";

}  // namespace cfp::inline v0_1::detail

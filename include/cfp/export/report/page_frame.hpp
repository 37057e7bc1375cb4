// The parts of a report's page, before anything is known of a plan.
#pragma once

namespace cfp::inline v0_1::detail {

// Nothing is asked of a network: the policy says so, and a browser holds to it.
inline constexpr char page_head[] = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
      content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
)html";

inline constexpr char page_body[] = R"html(
</head>
<body>
<header>
  <h1 id="title"></h1>
  <p class="soft" id="subtitle"></p>
  <div class="tiles" id="tiles"></div>
</header>
<main>
  <section aria-label="timeline">
    <h2>A step over time</h2>
    <p class="hint" id="timeline-hint"></p>
    <div class="bar"><span id="phases" class="bar"></span>
      <span class="right"><span class="num" id="window"></span>
        <button id="nearer" aria-label="zoom in">+</button><button id="farther" aria-label="zoom out">−</button>
        <button id="whole">all</button></span></div>
    <canvas id="timeline" tabindex="0" role="img" aria-label="what each stream does when"></canvas>
  </section>
  <div class="columns">
    <section aria-label="model">
      <h2>The model, and what was chosen</h2>
      <p class="hint" id="model-hint"></p>
      <div id="model"></div>
    </section>
    <section id="details" aria-live="polite" aria-label="a decision"></section>
  </div>
  <section aria-label="memory">
    <h2>Memory over the step</h2>
    <p class="hint" id="memory-hint"></p>
    <div class="bar" id="memory-keys"></div>
    <div id="memory"></div>
  </section>
  <div class="two">
    <section aria-label="compared plans">
      <h2>Compared plans</h2>
      <p class="hint" id="plans-hint"></p>
      <div id="plans"></div>
    </section>
    <section aria-label="time against memory">
      <h2>What memory is worth</h2>
      <p class="hint" id="curve-hint"></p>
      <div id="curve"></div>
    </section>
  </div>
  <section aria-label="mesh and machine">
    <h2>Mesh and machine</h2>
    <div class="two" id="machine"></div>
  </section>
</main>
<footer id="footer"></footer>
<div id="tip" hidden></div>
<script type="application/json" id="data">)html";

}  // namespace cfp::inline v0_1::detail

// Plots as SVG elements. What the server says is only ever text in them.

const SVG = "http://www.w3.org/2000/svg";

function draw(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function canvas(width, height, title) {
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
}

// Plots are drawn as wide as their place, so that their text keeps its size.
const widthOf = (place) => Math.max(Math.min(place.clientWidth || 560, 640), 280);

export function ratingPlot(months, place) {
  const width = widthOf(place), height = 230, left = 30, right = 10, top = 12, bottom = height - 28;
  const told = months.map((each) => `${each.month}: ${each.rating}`).join(", ");
  const svg = canvas(width, height, `Mean rating by month, of 5. ${told}`);
  const step = (width - left - right) / Math.max(months.length - 1, 1);
  const x = (number) => (months.length === 1 ? width / 2 : left + number * step);
  const y = (rating) => bottom - (rating / 5) * (bottom - top);
  for (let rating = 0; rating <= 5; rating += 1) {
    svg.append(draw("path", { class: "grid", d: `M${left} ${y(rating)}H${width - right}` }));
    svg.append(draw("text", { x: left - 8, y: y(rating) + 4, "text-anchor": "end" }, String(rating)));
  }
  const most = Math.max(...months.map((each) => each.reviews), 1);
  const wide = Math.max(Math.min(step * 0.6, 18), 2);
  const every = Math.ceil(months.length / (width / 90));
  months.forEach((each, number) => {
    const tall = (each.reviews / most) * (bottom - top) * 0.3;
    svg.append(draw("rect", { class: "count", x: x(number) - wide / 2, y: bottom - tall, width: wide, height: tall }));
  });
  svg.append(draw("polyline", { class: "line", points: months.map((each, number) => `${x(number)},${y(each.rating)}`).join(" ") }));
  months.forEach((each, number) => {
    const note = draw("title", {}, `${each.month}: ${each.rating} of 5, ${each.reviews} reviews`);
    svg.append(draw("circle", { class: "dot", cx: x(number), cy: y(each.rating), r: 3.5 }, note));
    if (number % every === 0) {
      svg.append(draw("text", { x: x(number), y: height - 8, "text-anchor": "middle" }, each.month));
    }
  });
  return svg;
}

export function sentimentPlot(sentiment, place) {
  const width = widthOf(place), total = Object.values(sentiment).reduce((sum, each) => sum + each, 0) || 1;
  const kinds = [["positive", "good"], ["neutral", "plain"], ["negative", "bad"]];
  const told = kinds.map(([name]) => `${name} ${sentiment[name] ?? 0}`).join(", ");
  const svg = canvas(width, 54, told);
  let at = 0;
  for (const [name, colour] of kinds) {
    const count = sentiment[name] ?? 0;
    const wide = (count / total) * width;
    const note = draw("title", {}, `${name}: ${count}`);
    svg.append(draw("rect", { class: colour, x: at, y: 0, width: wide, height: 26 }, note));
    if (wide > 76) {
      svg.append(draw("text", { x: at + 2, y: 44 }, `${Math.round((100 * count) / total)}% ${name}`));
    }
    at += wide;
  }
  return svg;
}

export function starsPlot(counts, host) {
  const width = widthOf(host), row = 24, left = 36, svg = canvas(width, 5 * row, "Reviews by stars");
  const most = Math.max(...Object.values(counts), 1);
  [5, 4, 3, 2, 1].forEach((number, place) => {
    const count = counts[number] ?? 0;
    const wide = (count / most) * (width - left - 60);
    svg.append(
      draw("text", { x: left - 8, y: place * row + 17, "text-anchor": "end" }, `${number} ★`),
      draw("rect", { class: "dot", x: left, y: place * row + 4, width: wide, height: 16 }),
      draw("text", { x: left + wide + 8, y: place * row + 17 }, String(count)),
    );
  });
  return svg;
}

export function aspectBar(aspect, most) {
  const width = 300, svg = canvas(width, 14, `${aspect.positive} positive, ${aspect.negative} negative of ${aspect.mentions}`);
  const rest = Math.max(aspect.mentions - aspect.positive - aspect.negative, 0);
  svg.setAttribute("preserveAspectRatio", "none");
  let at = 0;
  for (const [count, colour] of [[aspect.positive, "good"], [rest, "plain"], [aspect.negative, "bad"]]) {
    const wide = (count / most) * width;
    svg.append(draw("rect", { class: colour, x: at, y: 0, width: wide, height: 14 }));
    at += wide;
  }
  return svg;
}

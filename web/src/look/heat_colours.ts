// The temperature view's colours, for the shader and for its legend.

export interface HeatStop {
  /** [°C] */
  temperature: number;
  colour: [number, number, number];
}

/** sRGB; more room for what tissue does below 100 °C than above. Tuned to be told apart on red tissue. */
export const HEAT_STOPS: HeatStop[] = [
  { temperature: 37, colour: [24, 32, 72] },
  { temperature: 60, colour: [86, 42, 150] },
  { temperature: 80, colour: [196, 50, 128] },
  { temperature: 100, colour: [246, 110, 62] },
  { temperature: 200, colour: [255, 196, 70] },
  { temperature: 300, colour: [255, 250, 220] },
];

/** Even spacing of the stops, 0 to 1: where a temperature stands in the legend. */
export function heatPlace(temperature: number): number {
  const last = HEAT_STOPS.length - 1;
  if (temperature <= HEAT_STOPS[0].temperature) return 0;
  for (let i = 1; i <= last; i++) {
    const low = HEAT_STOPS[i - 1].temperature;
    const high = HEAT_STOPS[i].temperature;
    if (temperature <= high) return (i - 1 + (temperature - low) / (high - low)) / last;
  }
  return 1;
}

/** As a CSS gradient, cold on the left. */
export function heatGradient(): string {
  return `linear-gradient(90deg, ${HEAT_STOPS.map(({ colour }) => `rgb(${colour.join(" ")})`).join(", ")})`;
}

/** `vec3 heatColour(float celsius)`, as the screen shows it. */
export const HEAT_GLSL = /* glsl */ `
vec3 heatColour(float celsius) {
  vec3 colour = ${vec3(HEAT_STOPS[0].colour)};
${HEAT_STOPS.slice(1).map((stop, i) =>
  `  colour = mix(colour, ${vec3(stop.colour)}, clamp((celsius - ${HEAT_STOPS[i].temperature}.0) / ${stop.temperature - HEAT_STOPS[i].temperature}.0, 0.0, 1.0));`).join("\n")}
  return colour;
}
`;

function vec3(colour: [number, number, number]): string {
  return `vec3(${colour.map((c) => (c / 255).toFixed(4)).join(", ")})`;
}

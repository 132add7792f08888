// What lies on the tissue, for its shader: ink, burns, and the film of blood and other fluids.
//
// Burn: the table of stages gives colour, cover, roughness and wetness by burn level; noise frays the borders and cracks
// the char. Film: light goes down through it and up again, T = exp(−2 µa d) per colour (Beer–Lambert); µa of whole blood
// at 150 g/L from Prahl's tables (omlc.org/spectra/hemoglobin), deoxygenated for clots: at 550 and 450 nm for green and
// blue, and for red a mean over what a camera's red takes in (580 to 700 nm, 20000 to 300 1/m), so that two tenths of a
// millimetre are dark already. Blood also scatters a little light back, which is what thick blood looks like. The thickness
// is a height: its slope bends the reflection, more at the border, where a fluid bulges (a meniscus).

import { HEAT_GLSL } from "./heat_colours";
import { BURN_SCALE, FILM_SCALE, HIGHEST_LEVEL, glsl } from "./scales";

/** After the tissue's own declarations; `bent` and `glossy` are the tissue's. */
export const SKIN_GLSL = /* glsl */ `
struct Skin {
  vec3 flesh;
  float covered; // 0 the organ's own colour, 1 burnt
  float charred;
  float rough; // of the coat, 0 as living tissue
  float coat; // share of the wet coat that is there
  float celsius;
};

#ifdef INK
uniform sampler2D uInk;

const vec3 GENTIAN_VIOLET = vec3(0.045, 0.010, 0.14); // of a skin marker, for ink that says no colour

// What is drawn or laid on the skin follows the tissue; under a burn it is gone. Colours are told times alpha.
void inkSkin(inout Skin skin, vec4 ink, vec4 fine) {
  vec3 told = pow(ink.rgb / max(ink.a, 1e-3), vec3(2.2));
  bool coloured = dot(ink.rgb, vec3(1.0)) > 0.02 * ink.a;
  float cover = smoothstep(0.15, 0.75, ink.a + 0.12 * fine.a * ink.a) * (coloured ? 0.96 : 0.85);
  skin.flesh = mix(skin.flesh, coloured ? told : GENTIAN_VIOLET, cover);
  // What is light is cloth, and does not shine.
  if (coloured) skin.coat *= 1.0 - 0.85 * cover * smoothstep(0.03, 0.12, told.r);
}
#endif

#ifdef BURN
uniform sampler2D uBurn;
uniform sampler2D uStages;

// Glowing begins to be seen in a dark room [°C].
const float DULL_RED = 500.0;

float celsiusOf(vec4 burn) {
  return mix(${glsl(BURN_SCALE.coldest)}, ${glsl(BURN_SCALE.hottest)}, burn.r);
}

// 'fine' and 'middle' are noise; its value is in a.
void burnSkin(inout Skin skin, vec4 burn, vec4 fine, vec4 middle) {
  skin.celsius = celsiusOf(burn);
  float level = burn.g + burn.b;
  // Borders fray: tissue is not even. Nothing is burnt that is not, and char stays char.
  float fray = smoothstep(0.0, 0.35, level) * (1.0 - smoothstep(1.7, 2.0, level));
  level = clamp(level + fray * (0.22 * middle.a + 0.16 * fine.a), 0.0, ${glsl(HIGHEST_LEVEL)});
  float along = level / ${glsl(HIGHEST_LEVEL)} * (255.0 / 256.0) + 0.5 / 256.0;
  vec4 stage = texture(uStages, vec2(along, 0.25));
  vec2 coat = texture(uStages, vec2(along, 0.75)).rg;
  skin.charred = smoothstep(1.2, 1.75, level);
  vec3 own = stage.rgb * (1.0 + 0.16 * middle.a + 0.10 * fine.a);
  // Coagulated tissue keeps some of the organ's mottling under the white.
  skin.flesh = mix(skin.flesh, own, stage.a);
  skin.covered = stage.a;
  skin.rough = clamp((coat.r - 0.35) / 0.65, 0.0, 1.0);
  // Alpha is the water left.
  skin.coat *= coat.g * mix(1.0, burn.a, stage.a);
  // Char cracks where two soft noises cross zero, and is grey with ash on its ridges.
  float crack = min(abs(fine.a + 0.35 * middle.x), abs(middle.a + 0.3 * fine.y) * 1.6);
  float open = skin.charred * (1.0 - smoothstep(0.015, 0.10, crack));
  skin.flesh = mix(skin.flesh, skin.flesh * vec3(0.25, 0.18, 0.16), open);
  skin.flesh += skin.charred * 0.018 * smoothstep(0.35, 0.8, fine.a);
}

vec3 heatGlow(float celsius) {
  float over = max(celsius - DULL_RED, 0.0) / 300.0;
  return over * over * vec3(1.0, 0.22, 0.03);
}
${HEAT_GLSL}
#endif

#ifdef FILM
uniform sampler2D uFilm;
uniform vec2 uFilmSize; // [texels]
uniform vec3 uDye; // [1/m] of the fluid besides blood that has a colour
uniform vec3 uDyeBody; // light that it scatters back where it is deep

// [1/m]
const vec3 BLOOD = vec3(1400.0, 23000.0, 33000.0);
const vec3 CLOT = vec3(5200.0, 26000.0, 33000.0);
// Light that deep fluid scatters back.
const vec3 BLOOD_BODY = vec3(0.120, 0.0035, 0.0030);
const vec3 CLOT_BODY = vec3(0.055, 0.0060, 0.0050);
const float BODY_DEPTH = 2000.0; // [1/m] over which it is reached
const float SCATTER = 900.0; // [1/m] that cells send elsewhere; with it 1 mm is opaque to red too
const float BRIM = 0.000022; // [m] fluid that stands begins here; thinner is a stain
const float BULGE = 2.4; // how much steeper a meniscus is than the picture's soft border

const float REACH = 0.9; // [texel]
const float LEVEL = 0.05; // slope below which the surface lies level: a byte of the picture is about 0.015

struct Fluid {
  float height; // [m]
  float stands; // 0 a stain, 1 a body of fluid; its border is as sharp as the pixels
  vec3 parts; // blood, dye, clot, of the fluid
  vec3 slope; // of its surface against the tissue's, view space
};

float heightOf(float red) {
  return red * red * ${glsl(FILM_SCALE.thickest)};
}

// Almost a texel to each corner: nearer, the steps of the bytes between two texels would show as a row of beads along a
// border. Charts end with two rings of texels that repeat their border, so nothing beyond one is read.
Fluid fluidAt(vec2 uv, vec3 point, vec3 normal) {
  Fluid fluid;
  vec4 here = texture(uFilm, uv);
  vec2 px = dFdx(uv), py = dFdy(uv);
  vec3 ex = dFdx(point), ey = dFdy(point);
  fluid.height = fluid.stands = 0.0;
  fluid.slope = vec3(0.0);
  fluid.parts = here.gba;
  if (here.r <= 0.0) return fluid;
  vec2 d = REACH / uFilmSize;
  vec4 ne = texture(uFilm, uv + d), sw = texture(uFilm, uv - d);
  vec4 nw = texture(uFilm, uv + vec2(-d.x, d.y)), se = texture(uFilm, uv + vec2(d.x, -d.y));
  vec4 h = vec4(heightOf(ne.r), heightOf(nw.r), heightOf(sw.r), heightOf(se.r));
  float own = heightOf(here.r);
  float sum = dot(h, vec4(1.0));
  fluid.height = 0.2 * (own + sum);
  // Parts of what is there: a dry neighbour has none and says nothing.
  fluid.parts = (here * own + ne * h.x + nw * h.y + sw * h.z + se * h.w).gba / max(own + sum, 1e-12);
  vec2 rise = vec2(h.x + h.w - h.y - h.z, h.x + h.y - h.z - h.w) * uFilmSize / (4.0 * REACH); // per unit of uv
  float within = abs(dot(rise, px)) + abs(dot(rise, py)); // of the height within a pixel
  fluid.stands = smoothstep(-0.7, 0.7, (fluid.height - BRIM) / max(within, 2e-6));
  // From the texture to the surface by way of the screen (Mikkelsen 2010), so stretch does not matter.
  vec3 rx = cross(ey, normal), ry = cross(normal, ex);
  float det = dot(ex, rx);
  fluid.slope = (dot(rise, px) * rx + dot(rise, py) * ry) / (abs(det) < 1e-20 ? 1e-20 : det);
  fluid.slope *= min(length(fluid.slope) / LEVEL, 1.0) * mix(BULGE, 1.0, smoothstep(0.00003, 0.00016, fluid.height));
  fluid.slope *= smoothstep(0.8 * BRIM, 2.4 * BRIM, fluid.height);
  return fluid;
}

// What is seen of the tissue through the fluid; 'cosine' of the view's angle makes the way longer.
vec3 through(vec3 flesh, Fluid fluid, float cosine) {
  float fresh = max(fluid.parts.x - fluid.parts.z, 0.0);
  vec3 absorbs = BLOOD * fresh + CLOT * fluid.parts.z + uDye * fluid.parts.y;
  // Below the brim there is a stain: the skirt of a soft border would be a halo.
  float deep = fluid.height * mix(0.5, 1.0, fluid.stands);
  // Refracted: never flatter than about 45°.
  float way = deep * (1.0 + 1.0 / mix(0.7, 1.0, cosine));
  float told = fresh + fluid.parts.y + fluid.parts.z;
  vec3 body = (BLOOD_BODY * fresh + CLOT_BODY * fluid.parts.z + uDyeBody * fluid.parts.y) / max(told, 1e-3);
  // Deep fluid grows darker: less of what enters finds its way back. Tuned, so that puddles stand out from what is smeared.
  body *= mix(1.0, 0.30, smoothstep(0.00010, 0.0006, deep));
  vec3 seen = flesh * exp(-(absorbs + SCATTER * min(told, 1.0)) * way) + body * (1.0 - exp(-BODY_DEPTH * deep * min(told, 1.0)));
  // The brim stands over what lies just outside it.
  return seen * (1.0 - 0.22 * smoothstep(0.15, 1.0, fluid.height / BRIM) * (1.0 - fluid.stands));
}
#endif
`;

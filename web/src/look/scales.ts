// What the bytes of the textures mean. `heat/burn.py` packs the burn, `blood/film_image.py` the film.

/** Red of a burn texture: 0 is `coldest`, 255 is `hottest`, linear between [°C]. */
export const BURN_SCALE = { coldest: 37, hottest: 400 };

/** Green and blue of a burn texture: their sum is the level that the table of stages counts in, 0 to this. */
export const HIGHEST_LEVEL = 2;

/** Red of a film texture is 255 · √(thickness / thickest) [m]. */
export const FILM_SCALE = { thickest: 0.002 };

/** As a number of a shader. */
export function glsl(value: number): string {
  return Number.isInteger(value) ? value.toFixed(1) : String(value);
}

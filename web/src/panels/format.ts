// Numbers as people read them.

/** 75.26 s becomes 1:15.3. */
export function clock(seconds: number): string {
  const tenths = Math.round(seconds * 10);
  const minutes = Math.floor(tenths / 600);
  const rest = tenths - minutes * 600;
  return `${minutes}:${String(Math.floor(rest / 10)).padStart(2, "0")}.${rest % 10}`;
}

export function factor(value: number): string {
  return `×${value.toFixed(2)} real time`;
}

/** With a minus as typesetters have it. */
export function signed(value: number, digits: number): string {
  return value.toFixed(digits).replace("-", "−");
}

/** Three significant digits, plain. */
export function plain(value: number): string {
  if (value === 0) return "0";
  const digits = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(Math.abs(value)))));
  return String(Number(value.toFixed(digits)));
}

/** The next 1, 2 or 5 times a power of ten that is not below `value`. */
export function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  for (const step of [1, 2, 5]) if (step * power >= value * (1 - 1e-9)) return step * power;
  return 10 * power;
}

/** A step of a slider: one of about 200, round. */
export function sliderStep(minimum: number, maximum: number): number {
  return niceCeiling((maximum - minimum) / 250);
}

// Colour tables: 256 colours between stops, and colours of categories.

const STOPS = /** @type {Record<string, string>} */ ({
  viridis: "440154,482475,414487,355f8d,2a788e,21918c,22a884,44bf70,7ad151,bddf26,fde725",
  magma: "000004,140e36,3b0f70,641a80,8c2981,b73779,de4968,f7705c,fe9f6d,fecf92,fcfdbf",
  inferno: "000004,160b39,420a68,6a176e,932667,bc3754,dd513a,f37819,fca50a,f6d746,fcffa4",
  plasma: "0d0887,41049d,6a00a8,8f0da4,b12a90,cc4778,e16462,f2844b,fca636,fcce25,f0f921",
  cividis: "00224e,123570,3b496c,575d6d,707173,8a8678,a59c74,c3b369,e1cc55,fee838",
  gray: "000000,ffffff",
  turbo: "30123b,4145ab,4675ed,39a2fc,1bcfd4,24eca6,61fc6c,a4fc3b,d1e834,f3c63a,fe9b2d,f36315,d93806,b11901,7a0402",
  RdBu: "67001f,b2182b,d6604d,f4a582,fddbc7,f7f7f7,d1e5f0,92c5de,4393c3,2166ac,053061",
  Spectral: "9e0142,d53e4f,f46d43,fdae61,fee08b,ffffbf,e6f598,abdda4,66c2a5,3288bd,5e4fa2",
  coolwarm: "3b4cc0,5977e3,7b9ff9,9ebeff,c0d4f5,dddcdc,f2cbb7,f7ac8e,ee8468,d65244,b40426",
});

/** The names of the tables. */
export const NAMES = Object.keys(STOPS);

/** @param {string} text @returns {[number, number, number]} */
export function rgb(text) {
  const number = Number.parseInt(text.replace("#", ""), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

/**
 * A table of 256 colours, each as a pixel in the order of bytes in memory.
 * @param {string} name A name, with `_r` at its end for the reverse.
 * @returns {Uint32Array}
 */
export function table(name) {
  const isReversed = name.endsWith("_r");
  const stops = (STOPS[isReversed ? name.slice(0, -2) : name] || STOPS.viridis).split(",").map(rgb);
  const pixels = new Uint32Array(256);
  for (let at = 0; at < 256; at += 1) {
    const place = ((isReversed ? 255 - at : at) / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    const part = place - low;
    const [r, g, b] = [0, 1, 2].map((one) => Math.round(stops[low][one] * (1 - part) + stops[low + 1][one] * part));
    pixels[at] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return pixels;
}

/**
 * The colour of a label: none for 0, and different ones for others.
 * @param {number} label
 * @returns {number} A pixel.
 */
export function category(label) {
  if (!label) return 0;
  const hue = (label * 0.618033988749895) % 1;
  const value = 0.95 - 0.25 * ((label * 0.414213562) % 1);
  const channel = (/** @type {number} */ shift) => {
    const part = (shift + hue * 6) % 6;
    return Math.round(255 * (value - value * 0.65 * Math.max(0, Math.min(part, 4 - part, 1))));
  };
  return (255 << 24) | (channel(1) << 16) | (channel(3) << 8) | channel(5);
}

/**
 * Pixels of numbers by a table.
 * @param {ArrayLike<number>} values
 * @param {Uint32Array} pixels One for each number.
 * @param {Uint32Array} colors
 * @param {[number, number]} range
 * @param {string} scale `linear`, `log` or `sqrt`.
 */
export function paint(values, pixels, colors, range, scale) {
  const bend = scale === "log" ? Math.log : scale === "sqrt" ? Math.sqrt : null;
  const low = bend === Math.log && range[0] <= 0 ? Math.max(range[1] / 1000, Number.MIN_VALUE) : range[0];
  const from = bend ? bend(Math.max(low, 0)) : low;
  const to = bend ? bend(Math.max(range[1], 0)) : range[1];
  const factor = to > from ? 256 / (to - from) : 0;
  for (let at = 0; at < pixels.length; at += 1) {
    const value = values[at];
    if (value !== value) {
      pixels[at] = 0;
      continue;
    }
    const bent = bend ? bend(Math.max(value, low)) : value;
    const place = (bent - from) * factor;
    pixels[at] = colors[place <= 0 ? 0 : place >= 255 ? 255 : place | 0];
  }
}

// Colour tables: 256 colours between stops, and colours of categories.

import { extremes, partBelow, percentiles, typeRange } from "./decode.js";

// Tables of 256 colours, three bytes each. Viridis, magma, inferno and plasma are by Stéfan van der Walt and Nathaniel Smith (CC0),
// cividis is by Jamie Nuñez, Christopher Anderton and Ryan Renslow (CC0), turbo is by Anton Mikhailov (Apache-2.0).
const TABLES = /** @type {Record<string, string>} */ ({
  viridis:
    "RAFURAJWRQRXRQVZRgdaRghcRgpdRgteRw1gRw5hRxBjRxFkRxNlSBRnSBZoSBdpSBhqSBpsSBttSBxuSB1vSB9wSCBxSCFzSCN0SCR1SCV2SCZ3SCh4SCl5Ryp6Ryx6" +
    "Ry17Ry58Ry99RjB+RjJ+RjN/RjSARTWBRTeBRTiCRDmDRDqDRDuEQz2EQz6FQj+FQkCGQkGGQUKHQUSHQEWIQEaIP0eIP0iJPkmJPkqJPkyKPU2KPU6KPE+KPFCLO1GL" +
    "O1KLOlOLOlSMOVWMOVaMOFiMOFmMN1qMN1uNNlyNNl2NNV6NNV+NNGCNNGGNM2KNM2ONMmSOMmWOMWaOMWeOMWiOMGmOMGqOL2uOL2yOLm2OLm6OLm+OLXCOLXGOLHGO" +
    "LHKOLHOOK3SOK3WOKnaOKneOKniOKXmOKXqOKXuOKHyOKH2OJ36OJ3+OJ4COJoGOJoKOJoKOJYOOJYSOJYWOJIaOJIeOI4iOI4mOI4qNIouNIoyNIo2NIY6NIY+NIZCN" +
    "IZGMIJKMIJKMIJOMH5SMH5WLH5aLH5eLH5iLH5mKH5qKHpuKHpyJHp2JH56JH5+IH6CIH6GIH6GHH6KHIKOGIKSGIaWFIaaFIqeFIqiEI6mDJKqDJauCJayCJq2BJ62B" +
    "KK6AKa9/KrB/LLF+LbJ9LrN8L7R8MbV7MrZ6NLZ5Nbd5N7h4OLl3Orp2O7t1Pbx0P7xzQL1yQr5xRL9wRsBvSMFuSsFtTMJsTsNrUMRqUsVpVMVoVsZnWMdlWshkXMhj" +
    "XsliYMpgY8tfZcteZ8xcac1bbM1abs5YcM9Xc9BWddBUd9FTetFRfNJQf9NOgdNNhNRLhtVJidVIi9ZGjtZFkNdDk9dBldhAmNg+m9k8ndk7oNo5oto3pds2qNs0qtwy" +
    "rdwwsN0vst0ttd4ruN4put4ovd8mwN8lwt8jxeAhyOAgyuEfzeEd0OEc0uIb1eIa2OIZ2uMZ3eMY3+MY4uQY5eQZ5+QZ6uUa7OUb7+Uc8eUd9OYe9uYg+OYh++cj/ecl",
  magma:
    "AAAEAQAFAQEGAQEIAgEJAgILAgINAwMPAwMSBAQUBQQWBgUYBgUaBwYcCAceCQcgCggiCwkkDAkmDQopDgsrEAstEQwvEg0xEw00FA42FQ44Fg87GA89GRA/GhBCHBBE" +
    "HRFHHhFJIBFLIRFOIhFQJBJTJRJVJxJYKRFaKhFcLBFfLRFhLxFjMRFlMxBnNBBpNhBrOBBsOQ9uOw9wPQ9xPw9yQA90Qg91RA92RRB3RxB4SRB4ShB5TBF6ThF7TxJ7" +
    "URJ8UhN8VBN9VhR9VxV+WRV+WhZ+XBZ/XRd/Xxh/YBiAYhmAZBqAZRqAZxuAaByBahyBax2BbR2Bbh6BcB+Bch+BcyCBdSGBdiGBeCKBeSKCeyOCfCOCfiSCgCWCgSWB" +
    "gyaBhCaBhieBiCeBiSiBiymBjCmBjiqBkCqBkSuBkyuAlCyAliyAmC2AmS2Amy5/nC5/ni9/oC9/oTB+ozB+pTF+pjF9qDJ9qjN9qzN8rTR8rjR7sDV7sjV7szZ6tTZ6" +
    "tzd5uDd5ujh4vDl4vTl3vzp3wDp2wjt1xDx1xTx0xz1zyD5zyj5yzD9xzUBxz0Bw0EFv0kJv00Nu1URt1kVs2EVs2UZr20dq3Ehp3klo30po4Exn4k1m405l5E9k5VBk" +
    "51Jj6FNi6VRi6lZh61dg7Fhg7Vpf7lte711e8F9e8WBd8mJd8mRc82Vc9Gdc9Glc9Wtc9mxc9m5c93Bc93Jc+HRc+HZc+Xhd+Xld+Xtd+n1e+n9e+oFf+4Nf+4Vg+4dh" +
    "/Ilh/Ipi/Ixj/I5k/JBl/ZJm/ZRn/ZZo/Zhp/Zpq/Ztr/p1s/p9t/qFu/qNv/qVx/qdy/qlz/qp0/qx2/q53/rB4/rJ6/rR7/rZ8/rd+/rl//ruB/r2C/r+E/sGF/sKH" +
    "/sSI/saK/siM/sqN/syP/s2Q/s+S/tGU/tOV/tWX/teZ/tia/dqc/dye/d6g/eCh/eKj/eOl/eWn/eep/emq/eus/Oyu/O6w/PCy/PK0/PS2/Pa4/Pe5/Pm7/Pu9/P2/",
  inferno:
    "AAAEAQAFAQEGAQEIAgEKAgIMAgIOAwIQBAMSBAMUBQQXBgQZBwUbCAUdCQYfCgciCwckDAgmDQgpDgkrEAktEQowEgoyFAs0FQs3Fgs5GAw8GQw+GwxBHAxDHgxFHwxI" +
    "IQxKIwxMJAxPJgxRKAtTKQtVKwtXLQtZLwpbMQpcMgpeNApfNglhOAliOQljOwlkPQllPglmQApnQgpoRApoRQppRwtqSQtqSgxrTAxrTQ1sTw1sUQ5sUg5tVA9tVQ9t" +
    "VxBuWRBuWhFuXBJuXRJuXxNuYRNuYhRuZBVuZRVuZxZuaRZuahdubBhubRhubxlucRluchpudBpudRtudxxteBxteh1tfB1tfR5tfx5sgB9sgiBshCBrhSFrhyFriCJq" +
    "iiJqjCNpjSNpjyRpkCVokiVokyZnlSZnlydmmCdmmihlmylknSlknypjoCpjoitioyxhpSxgpi1gqC5fqS5eqy9erTBdrjBcsDFbsTJaszJatDNZtjRYtzVXuTVWujZV" +
    "vDdUvThTvzlSwDpRwTpQwztPxDxOxj1Nxz5MyD9LykBKy0FJzEJIzkNHz0RG0EVF0kZE00dD1EhC1UpB10s/2Ew+2U092k4821A73VE63lI431M34FU24VY14lc041kz" +
    "5Fox5Vww5l0v514u6GAt6WEr6mMq62Qp62Yo7Gcm7Wkl7mok72wj724h8G8g8XEf8XMd8nQc83Yb83gZ9HkY9XsX9X0V9n4U9oAT94IS94QQ+IUP+IcO+IkM+YsL+YwK" +
    "+Y4J+pAI+pIH+pQH+5YG+5cG+5kG+5sG+50H/J8H/KEI/KMJ/KUK/KYM/KgN/KoP/KwR/K4S/LAU/LIW/LQY+7Ya+7gd+7of+7wh+74j+sAm+sIo+sQq+sYt+ccv+cky" +
    "+cs1+M03+M8699E999NA9tVD9tdG9dlJ9dtM9N1P9N9T9OFW8+Na8+Vd8uZh8uhl8upp8ext8e1x8e918fF58vJ98vSC8/WG8/aK9PiO9fmS9vqW+Pua+fyd+v2h/P+k",
  plasma:
    "DQiHEAeIEweJFgeKGQaMGwaNHQaOIAaPIgaQJAaRJgWRKAWSKgWTLAWULgWVLwWWMQWXMwWXNQSYNwSZOASaOgSaPASbPgScPwScQQSdQwOeRAOeRgOfSAOfSQOgSwOh" +
    "TAKhTgKiUAKiUQKjUwKjVQKkVgGkWAGkWQGlWwGlXAGmXgGmYAGmYQCnYwCnZACnZgCnZwCoaQCoagCobACobgCobwCocQCocgGodAGodQGodwGoeAGoegKoewKofQOo" +
    "fgOogASogQSngwWnhAWnhgamhwemiAimigmliwqljQuljgykjw2kkQ6jkg+jlBCilRGhlhOhmBSgmRWfmhafnBeenRidnhmdoBqcoRuboh2aox6apR+ZpiCYpyGXqCKW" +
    "qiOVqySUrCaUrSeTriiSsCmRsSqQsiuPsyyOtC6NtS+MtjCLtzGKuDKJujOIuzSIvDWHvTeGvjiFvzmEwDqDwTuCwjyBwz2AxD5/xUB+xkF9x0J8yEN7yUR6ykV6y0Z5" +
    "zEd4zEl3zUp2zkt1z0x00E1z0U5y0k9x01Fx1FJw1VNv1VRu1lVt11Zs2Fdr2Vhq2lpq2ltp21xo3F1n3V5m3l9l3mFk32Jj4GNj4WRi4mVh4mZg42hf5Gle5Wpd5Wtd" +
    "5mxc525b529a6HBZ6XFY6XJX6nRX63VW63ZV7HdU7XlT7XpS7ntR73xR735Q8H9P8IBO8YFN8YNM8oRL84VL84dK9IhJ9IlI9YtH9YxG9o1F9o9E95BE95FD95NC+JRB" +
    "+JVA+Zc/+Zg++Zo++ps9+pw8+p47+586+6E5+6I4/KM4/KU3/KY2/Kg1/Kk0/asz/awz/a4y/a8x/bEw/bIv/bQv/bUu/rct/rgs/ros/rsr/r0q/r4q/sAp/cIp/cMo" +
    "/cUn/cYn/cgn/com/csm/M0l/M4l/NAl/NIl+9Mk+9Uk+9ck+tgk+tok+dwk+d0l+N8l+OEl9+Il9+Ql9uYm9ugm9ekm9esn9O0n8+4n8/An8vIn8fQm8fUl8Pck8Pkh",
  cividis:
    "ACJOACNPACRRACVTACVUACZWACdYAChZAChbACldACpfACphACtiACxkACxmAC1oAC5qAC5sAC9tADBvADBwADFwADFxATJxBTNxCDNwDDRwDzVwEjVwFDZwFjdwGDdv" +
    "GjhvHDlvHjpvIDpvITtuIzxuJDxuJj1uJz5uKT9uKj9tK0BtLUFtLkFtL0JtMUNtMkNtM0RtNEVsNUVsNkZsOEdsOUhsOkhsO0lsPEpsPUpsPktsP0xsQExsQU1sQk5s" +
    "Q05sRE9sRVBsRlFsR1FsSFJsSVNsSlNsS1RsTFVsTVVsTlZsT1dsUFdsUVhtUlltU1ptVFptVVttVVxtVlxtV11tWF5tWV5uWl9uW2BuXGFuXWFuXmJuXmNvX2NvYGRv" +
    "YWVvYmVvY2ZwZGdwZWhwZWhwZmlwZ2pxaGpxaWtxamxxa21ybG1ybG5ybW9ybm9zb3BzcHFzcXJ0cnJ0cnN0c3R1dHR1dXV1dnZ2d3d2d3d3eHh3eXl3enp4e3p4fHt4" +
    "fXx4fnx4fn14f354gH94gX94goB5g4F5hIJ5hYJ5hoN5h4R4iIV4iYV4ioZ4i4d4jIh4jYh4jol4j4p4kIt4kYt4kox4ko14k454lI53lY93lpB3l5F3mJJ3mZJ3mpN2" +
    "m5R2nJV2nZV2npZ2n5d1oJh1oZl1opl1o5p0pJt0pZx0ppx0p51zqJ5zqZ9zqqBzq6ByrKFyraJyrqNxr6RxsKVxsaVws6ZwtKdvtahvtqlvt6luuKpuuattuqxtu61t" +
    "vK5sva5svq9rv7BrwLFqwbJqwrNpw7NpxLRoxbVoxrZnx7dnyLhmyblly7llzLpkzbtjzrxjz71i0L5i0b9h0sBg08Bf1MFf1cJe1sNd18Rc2cVc2sZb28da3MhZ3chY" +
    "3slY38pX4MtW4cxV4s1U5M5T5c9S5tBR59FQ6NJP6dNO6tNM69RL7dVK7tZJ79dI8NhG8dlF8tpE89tC9dxB9t0/994++N88+eA6++E4/OI2/eM0/uQ0/uU1/uY2/ug4",
  turbo:
    "MBI7MhVDMxhKNBtRNR5YNiFfNyRmOCdtOSpzOi15Oy+APDKGPTWLPjiRPzuXPz6cQECiQUOnQUasQkmxQku1Q066RFG/RFTDRFbHRVnLRVzPRV7TRmHWRmTaRmbdRmng" +
    "RmvjR27mR3HpR3PrR3buR3jwR3vyRn30RoD2RoL4RoX6Rof7RYr8RYz9RI/+Q5H+QpT/QZb/QJn/Ppv+PZ7+O6D9OqP8OKX7N6j6Nav4M633Ma/1L7L0LrTyLLfwKrnu" +
    "KLzrJ77pJcDnI8PkIsXiIMffH8ndHsvaHM3YG9DVGtLSGtTQGdXNGNfKGNnIGNvFGN3CGN7AGOC9GeK7GeO5GuS2HOa0HeeyH+mvIOqsIuuqJeynJ+6kKu+hLPCeL/Gb" +
    "MvKYNfOUOPSRPPWOP/aKQ/eHRviESviATvl9Uvp6Vfp2WftzXfxvYfxsZf1paf1mbf5icf5fdf5cef5Zff9WgP9ThP9RiP9Oi/9Lj/9Jkv9Hlv5Emf5CnP5An/0/of09" +
    "pPw8p/w6qfs5rPs4r/o3sfk2tPg2t/c1ufY1vPU0vvQ0wfM0w/E0xvA0yO80y+00zew00Oo00uk11Oc11+U12eQ22+I23eA339834d0349s45dk459c56dU569M57NE6" +
    "7s8678068cs68sk69Mc69cU69sM698E6+L45+bw5+ro5+7g4+7Y3/LM2/LE2/a41/aw0/qkz/qcy/qQx/qEw/p4v/pst/pks/pYr/pMq/pAp/Y0n/Yom/Icl/IQj+4Ei" +
    "+34h+nsf+Xge+XUd+HIc928a9mwZ9WkY9GYX82MV8mAU8V0T8FsS71gR7VUQ7FMP61AO6k4N6EsM50kM5UcL5EUK4kMK4UEJ3z8I3T0I3DsH2jkH2DcG1jUG1DMF0jEF" +
    "0C8Fzi0EzCsEyioEyCgDxSYDwyUDwSMCviECvCACuR4Ctx0CtBsBshoBrxgBrBcBqRYBpxQBpBMBoRIBnhABmw8BmA4BlQ0BkgsBjgoBiwkCiAgChQcCgQYCfgUCegQD",
});

// Colours at equal distances. RdBu and Spectral are by Cynthia Brewer and Mark Harrower (ColorBrewer 2.0, Apache-2.0), coolwarm
// is by Kenneth Moreland ("Diverging Color Maps for Scientific Visualization", 2009).
const STOPS = /** @type {Record<string, string>} */ ({
  gray: "000000,ffffff",
  RdBu: "67001f,b2182b,d6604d,f4a582,fddbc7,f7f7f7,d1e5f0,92c5de,4393c3,2166ac,053061",
  Spectral: "9e0142,d53e4f,f46d43,fdae61,fee08b,ffffbf,e6f598,abdda4,66c2a5,3288bd,5e4fa2",
  coolwarm:
    "3b4cc0,445acc,4e68d7,5875e1,6282ea,6c8ef1,779af7,82a5fb,8db0fe,98b9ff,a3c2fe,aec9fd,b8d0f9,c2d5f4,ccd9ee,d5dbe6,dddddd," +
    "e5d8d1,ecd3c6,f1ccb9,f5c4ad,f7bba0,f7b194,f7a687,f49a7b,f18d6f,ec7f63,e57057,de614c,d55042,cb3e38,c0282f,b40426",
});

/** The names of the tables, which `_r` at the end reverses. */
export const NAMES = ["viridis", "magma", "inferno", "plasma", "cividis", "gray", "turbo", "RdBu", "Spectral", "coolwarm"];

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
  const own = isReversed ? name.slice(0, -2) : name;
  const pixels = STOPS[own] ? between(STOPS[own].split(",").map(rgb)) : unpacked(TABLES[own] || TABLES.viridis);
  return isReversed ? pixels.reverse() : pixels;
}

/** @param {string} text @returns {Uint32Array} */
function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return Uint32Array.from({ length: 256 }, (_, at) => pixel(bytes[3 * at], bytes[3 * at + 1], bytes[3 * at + 2]));
}

/**
 * Colours between stops at equal distances, linear in sRGB and rounded half up.
 * @param {[number, number, number][]} stops
 * @returns {Uint32Array}
 */
function between(stops) {
  const last = stops.length - 1;
  return Uint32Array.from({ length: 256 }, (_, at) => {
    const [before, part] = [Math.floor((at * last) / 255), (at * last) % 255];
    const [from, to] = [stops[before], stops[Math.min(before + 1, last)]];
    const [r, g, b] = [0, 1, 2].map((one) => Math.floor((2 * (from[one] * (255 - part) + to[one] * part) + 255) / 510));
    return pixel(r, g, b);
  });
}

/** @param {number} r @param {number} g @param {number} b @param {number} [a] */
export const pixel = (r, g, b, a = 255) => ((a << 24) | (b << 16) | (g << 8) | r) >>> 0;

const WORD = (1n << 64n) - 1n;
/** @type {Map<number, number>} */
const categories = new Map();

/**
 * The colour of a label: none for 0, and different ones for others, by a hash of the label (SplitMix64).
 * @param {number} label
 * @returns {number} A pixel.
 */
export function category(label) {
  const whole = Math.trunc(label);
  if (!whole) return 0;
  let known = categories.get(whole);
  if (known === undefined) {
    known = hashed(Number.isFinite(whole) ? BigInt(whole) : whole > 0 ? WORD : 0n);
    categories.set(whole, known);
  }
  return known;
}

/** @param {bigint} label */
function hashed(label) {
  let hash = (label + 0x9e3779b97f4a7c15n) & WORD;
  hash = ((hash ^ (hash >> 30n)) * 0xbf58476d1ce4e5b9n) & WORD;
  hash = ((hash ^ (hash >> 27n)) * 0x94d049bb133111ebn) & WORD;
  hash ^= hash >> 31n;
  const hue = Number(hash >> 48n) * 6;
  const [sector, rest] = [hue >> 16, (hue & 0xffff) >> 8];
  const saturation = 140 + Math.floor((Number((hash >> 40n) & 255n) * 115) / 255);
  const high = 160 + Math.floor((Number((hash >> 32n) & 255n) * 95) / 255);
  const down = (/** @type {number} */ by) => Math.floor((high * (255 * 255 - saturation * by)) / (255 * 255));
  const [low, falling, rising] = [down(255), down(rest), down(255 - rest)];
  const [r, g, b] = [[high, rising, low], [falling, high, low], [low, high, rising], [low, falling, high], [rising, low, high], [high, low, falling]][sector];
  return pixel(r, g, b);
}

/** Whether a picture can have these colours. @param {string} name */
export const isColormap = (name) => ["", "categories", "none", ...NAMES].includes(name.replace(/_r$/, "")) && !/^(categories|none)?_r$/.test(name);

/** The exponent of `gamma:0.5`; none of other scales. @param {string} scale */
function gamma(scale) {
  const exponent = scale.startsWith("gamma:") ? Number(scale.slice(6) || NaN) : NaN;
  return exponent > 0 && exponent < Infinity ? exponent : null;
}

/** Whether a picture can have this scale. @param {string} scale */
export const isScale = (scale) => ["", "linear", "log", "sqrt"].includes(scale) || gamma(scale) !== null;

/**
 * The range of a picture by a word of `/v1/image`; null where it is that of all pictures of the array.
 * @param {string} word
 * @param {() => ArrayLike<number> & {length: number}} values Those of the picture.
 * @param {{type: string, cf: import("./decode.js").Packing}} config
 * @param {string} scale
 * @returns {[number, number] | null}
 */
export function rangeOf(word, values, { type, cf }, scale) {
  if (!word || word === "auto") return null;
  const ends = word.split(",").map((end) => Number(end.replace("%", "")));
  const [low, high] =
    word === "type" ? typeRange(type, cf)
    : word === "slice" ? extremes(values()) ?? [0, 1]
    : word.endsWith("%") ? percentiles(values(), ends) ?? [0, 1]
    : ends;
  if (scale !== "log" || low > 0) return [low, high];
  // A logarithmic range begins above 0.
  return high > 0 ? [high / 1000, high] : [1, 10];
}

/**
 * A function from the numbers of a range to their places in it, from 0 to 1.
 * @param {[number, number]} range
 * @param {string} scale
 * @returns {(value: number) => number}
 */
export function placer([low, high], scale) {
  const span = high - low;
  const linear = span < Infinity ? (/** @type {number} */ value) => (value - low) / span : (/** @type {number} */ value) => partBelow(value, low, high);
  const factor = (/** @type {number} */ value) => (value / low < Infinity ? Math.log(value / low) : Math.log(value) - Math.log(low));
  const exponent = gamma(scale);
  // Without a range, all numbers of it are at its start.
  if (span <= 0) return () => 0;
  if (scale === "log" && low > 0) return (value) => factor(value) / factor(high);
  if (scale === "sqrt") return (value) => Math.sqrt(linear(value));
  return exponent ? (value) => linear(value) ** exponent : linear;
}

/**
 * Pixels of numbers by a table.
 * @param {ArrayLike<number>} values
 * @param {Uint32Array} pixels One for each number.
 * @param {Uint32Array} colors
 * @param {[number, number]} range
 * @param {string} scale `linear`, `log`, `sqrt` or `gamma:` and an exponent.
 */
export function paint(values, pixels, colors, [low, high], scale) {
  const place = placer([low, high], scale);
  for (let at = 0; at < pixels.length; at += 1) {
    const value = values[at];
    if (value !== value) pixels[at] = 0;
    else if (value < low) pixels[at] = colors[0];
    else if (value > high) pixels[at] = colors[255];
    else pixels[at] = colors[Math.min(255, (place(value) * 256) | 0)];
  }
}

/** Writes DER for tests, without judging it. */
export function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = [length & 0xff];
  for (let left = length >> 8; left > 0; left >>= 8) size.unshift(left & 0xff);
  if (length >= 0x80) size.unshift(0x80 | size.length);
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts);
export const octets = (...parts: readonly Uint8Array[]): Buffer => der(0x04, ...parts);
export const bits = (bytes: Uint8Array, unused = 0): Buffer => der(0x03, Buffer.from([unused]), bytes);
export const boolean = (value: boolean): Buffer => der(0x01, Buffer.from([value ? 0xff : 0]));
export const integer = (value: number): Buffer => {
  const bytes: number[] = [];
  let left = value;
  do {
    bytes.unshift(left & 0xff);
    left = Math.floor(left / 256);
  } while (left > 0);
  if ((bytes[0] ?? 0) >= 0x80) bytes.unshift(0);
  return der(0x02, Buffer.from(bytes));
};

export function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap((arc) => {
    const groups = [arc & 0x7f];
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128))
      groups.unshift((left & 0x7f) | 0x80);
    return groups;
  });
  return der(0x06, Buffer.from(bytes));
}

/** `YYYYMMDDHHMMSSZ`, in the short form before 2050. */
export function time(ms: number): Buffer {
  const text = `${new Date(ms).toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)}Z`;
  return Number(text.slice(0, 4)) < 2050
    ? der(0x17, Buffer.from(text.slice(2)))
    : der(0x18, Buffer.from(text));
}

/** A name of common names, the outermost first. */
export function distinguishedName(...names: readonly string[]): Buffer {
  const one = (name: string) => der(0x31, sequence(oid('2.5.4.3'), der(0x0c, Buffer.from(name))));
  return sequence(...names.map(one));
}

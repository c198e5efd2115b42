/** A value of one column in PostgreSQL's binary COPY format. */
type CopyValue =
  | { readonly int4: number }
  | { readonly int8: number }
  | { readonly text: string }
  | { readonly bytes: Uint8Array }
  | null;

const signature = Buffer.from('5047434f50590aff0d0a000000000000000000', 'hex');

function valueSize(value: CopyValue): number {
  if (value === null) return 0;
  if ('int4' in value) return 4;
  if ('int8' in value) return 8;
  return 'text' in value ? Buffer.byteLength(value.text) : value.bytes.length;
}

function writeValue(target: Buffer, offset: number, value: CopyValue): number {
  if (value === null) return target.writeInt32BE(-1, offset);
  const next = target.writeInt32BE(valueSize(value), offset);
  if ('int4' in value) return target.writeInt32BE(value.int4, next);
  if ('int8' in value) return target.writeBigInt64BE(BigInt(value.int8), next);
  if ('text' in value) return next + target.write(value.text, next);
  target.set(value.bytes, next);
  return next + value.bytes.length;
}

/** The stream `COPY ... FROM STDIN (FORMAT binary)` expects, header and trailer included, in one buffer. */
export function encodeCopyRows(rows: readonly (readonly CopyValue[])[]): Buffer {
  let size = signature.length + 2;
  for (const row of rows) {
    size += 2;
    for (const value of row) size += 4 + valueSize(value);
  }
  const target = Buffer.allocUnsafe(size);
  let offset = signature.copy(target, 0);
  for (const row of rows) {
    offset = target.writeInt16BE(row.length, offset);
    for (const value of row) offset = writeValue(target, offset, value);
  }
  target.writeInt16BE(-1, offset);
  return target;
}

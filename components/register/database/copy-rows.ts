const signature = Buffer.from('5047434f50590aff0d0a000000000000000000', 'hex');
const firstBytes = 16 * 1024;
/** A UTF-16 code unit has three bytes in UTF-8 at most. */
const bytesPerUnit = 3;

/** Writes rows in PostgreSQL's binary COPY format, column by column, into one growing buffer. */
interface CopyWriter {
  /** Begins a row of this number of columns. */
  row(columns: number): void;
  int4(value: number): void;
  int8(value: number): void;
  text(value: string | undefined): void;
  /** Bytes that are given as lower-case hex digits. */
  hex(value: string | undefined): void;
  /** A boolean that is true or null. */
  flag(value: boolean): void;
  /** The stream that `COPY ... FROM STDIN (FORMAT binary)` expects, header and trailer included. */
  finish(): Buffer;
}

/** Creates a writer; undefined values are null. */
export function createCopyWriter(): CopyWriter {
  let target = Buffer.allocUnsafe(firstBytes);
  let offset = signature.copy(target, 0);

  function reserve(bytes: number): void {
    if (offset + bytes <= target.length) return;
    const larger = Buffer.allocUnsafe(Math.max(target.length * 2, offset + bytes));
    target.copy(larger, 0, 0, offset);
    target = larger;
  }

  function writeNull(): void {
    reserve(4);
    offset = target.writeInt32BE(-1, offset);
  }

  return {
    row(columns) {
      reserve(2);
      offset = target.writeInt16BE(columns, offset);
    },
    int4(value) {
      reserve(8);
      offset = target.writeInt32BE(value, target.writeInt32BE(4, offset));
    },
    int8(value) {
      reserve(12);
      offset = target.writeBigInt64BE(BigInt(value), target.writeInt32BE(8, offset));
    },
    text(value) {
      if (value === undefined) return writeNull();
      reserve(4 + value.length * bytesPerUnit);
      const written = target.write(value, offset + 4);
      target.writeInt32BE(written, offset);
      offset += 4 + written;
    },
    hex(value) {
      if (value === undefined) return writeNull();
      reserve(4 + value.length / 2);
      const written = target.write(value, offset + 4, 'hex');
      target.writeInt32BE(written, offset);
      offset += 4 + written;
    },
    flag(value) {
      if (!value) return writeNull();
      reserve(5);
      offset = target.writeInt8(1, target.writeInt32BE(1, offset));
    },
    finish() {
      reserve(2);
      offset = target.writeInt16BE(-1, offset);
      return target.subarray(0, offset);
    },
  };
}

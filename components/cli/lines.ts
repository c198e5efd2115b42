import { cliError } from './errors.ts';

const newline = 0x0a;

/**
 * Lines of a stream of bytes, without their newlines, with one line in memory at a time. The last line must end with a
 * newline too.
 * @throws AppError unprocessable LINE_TOO_LONG or LINE_UNFINISHED
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  maxLineBytes: number,
): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let sizeBytes = 0;
  const add = (part: Uint8Array) => {
    sizeBytes += part.length;
    if (sizeBytes > maxLineBytes) {
      throw cliError('LINE_TOO_LONG', `The line is longer than ${maxLineBytes} bytes`);
    }
    if (part.length > 0) parts.push(part);
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      add(chunk.subarray(start, end));
      yield parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
      [parts, sizeBytes, start] = [[], 0, end + 1];
    }
    add(chunk.subarray(start));
  }
  if (sizeBytes > 0) {
    throw cliError('LINE_UNFINISHED', 'The last line does not end: the file is cut off');
  }
}

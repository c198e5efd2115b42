import { readableLine } from '#core/encoding/readable.ts';

/** One line of human-readable text: names, titles, addresses, reasons. */
export const line = readableLine;

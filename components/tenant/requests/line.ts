import { readableLine } from '#core/encoding/readable.ts';

/** One line that people read: names, titles, addresses, reasons. */
export const line = readableLine;

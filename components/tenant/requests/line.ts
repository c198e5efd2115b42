import { z } from 'zod';

/** Text without control characters: one line, and nothing that PostgreSQL cannot keep. */
export const line = z.string().regex(/^\P{Cc}*$/u, 'write one line, without control characters');

import { z } from 'zod';

/** One thing that a check of a definition found. */
export const findingSchema = z
  .object({
    severity: z.enum(['Error', 'Warning']),
    code: z.string(),
    message: z.string(),
    location: z.string().describe('JSON Pointer into the definition.'),
  })
  .meta({ id: 'BlueprintFinding' });

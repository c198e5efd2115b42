import { z } from 'zod';

const text = z.string();

/** Which validators of a set are alive. */
export const operationalSchema = z
  .object({
    registerId: text,
    validators: z.array(
      z.object({
        validatorId: text,
        did: text,
        status: z.enum(['active', 'inactive']),
        ttlRemainingSeconds: z.int().describe('Seconds until it counts as inactive.'),
        lastHeartbeat: text.describe('ISO 8601, UTC.'),
        isProposer: z.boolean(),
        height: z.int().optional().describe('The docket that it decides; of validators that answer.'),
        round: z.int().optional().describe('The round of that docket.'),
        version: text.optional().describe('Version of its program.'),
      }),
    ),
    count: z.int(),
  })
  .meta({ id: 'OperationalValidators' });

import { z } from 'zod';
import { HUMAN_TIERS } from '#core/identity/tiers.ts';

/**
 * The tier a person asks for, trimmed and in any case. Other texts are refused: a misspelt `consumer` would otherwise
 * give a token of the platform tier.
 */
export const tier = z.preprocess(
  (value) => (typeof value === 'string' ? value.trim().toLowerCase() : value),
  z.enum(HUMAN_TIERS),
);

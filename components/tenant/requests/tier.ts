import { z } from 'zod';
import { HUMAN_TIERS } from '#core/identity/tiers.ts';

/**
 * Parses the requested tier, trimmed and case-insensitive. Other texts are refused, because a misspelt `consumer` would
 * otherwise give a token of the platform tier.
 */
export const tier = z.preprocess(
  (value) => (typeof value === 'string' ? value.trim().toLowerCase() : value),
  z.enum(HUMAN_TIERS),
);

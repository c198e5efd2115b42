import { z } from 'zod';
import { isWalletAddress } from '#core/crypto/address.ts';
import { identifier } from '#core/identity/identifier.ts';

/** Parameters of the routes of trust administration. */
export const tenantParams = z.object({
  tenantId: identifier.describe('Id of the organisation.'),
});

export const walletParams = tenantParams.extend({
  orgWalletAddress: z
    .string()
    .max(100)
    .refine(isWalletAddress, 'expected the address of a wallet')
    .describe('Address of the wallet of the organisation.'),
});

import { z } from 'zod';
import { isWalletAddress } from '#core/crypto/address.ts';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';
import type { Reader } from '#kit/db/db.ts';
import { type App, callerOf, jsonAnswer } from '#kit/http/http.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { getVisibleRegister } from '../../registers/state/access.ts';
import { resolveKeys } from './resolve.ts';
import { findKeys } from './store.ts';

export interface ParticipantsDeps {
  readonly db: Reader<RegisterSchema>;
}

const resolveBody = z.object({
  walletAddresses: z.array(z.string().refine(isWalletAddress, 'expected a wallet address')).min(1).max(200),
  algorithm: z.enum(ALGORITHMS).optional().describe('Only keys of this algorithm.'),
});

export function mountParticipants(app: App, deps: ParticipantsDeps): void {
  app.post(
    '/api/registers/:registerId/participants/resolve-public-keys',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'resolvePublicKeys',
        tags: ['Participants'],
        summary: 'The keys that participants published for their addresses',
        params: z.object({ registerId: z.string() }),
        body: resolveBody,
        response: jsonAnswer('The keys by address.'),
      },
    },
    async (request) => {
      const { walletAddresses, algorithm } = request.body;
      const register = await getVisibleRegister(deps.db, callerOf(request), request.params.registerId);
      const keys = await findKeys(deps.db, register.registerNo, walletAddresses);
      return resolveKeys(walletAddresses, keys, algorithm);
    },
  );
}

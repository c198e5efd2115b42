import type { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import type { ReadonlyDeep } from '#kit/http/http.ts';
import type { Register } from '../state/store.ts';
import type { registerSchema } from './schemas.ts';

/** A register in answers. */
export function presentRegister(register: Register): ReadonlyDeep<z.output<typeof registerSchema>> {
  return {
    id: register.registerId,
    registerId: register.registerId,
    title: register.title,
    ...(register.description !== undefined && { description: register.description }),
    purpose: register.purpose,
    status: register.status,
    height: register.height,
    transactionCount: register.transactionCount,
    devMode: register.devMode,
    advertise: register.advertise,
    sandbox: register.metadata['sandbox'] === 'true',
    isFullReplica: true,
    syncState: null,
    policyVersion: register.policyVersion,
    validatorSetVersion: register.validatorSetVersion,
    networkId: register.networkId,
    genesisTransactionId: register.genesisTransactionId,
    metadata: register.metadata,
    createdAt: apiTimestamp(register.createdAt.getTime()),
    updatedAt: apiTimestamp(register.updatedAt.getTime()),
  };
}

import type { ParticipantKey } from './record.ts';

/** Sorts addresses into known, revoked and unknown keys; a revoked address is in `revoked` only. */
export function resolveKeys(
  addresses: readonly string[],
  keys: readonly ParticipantKey[],
  algorithm: string | undefined,
) {
  const fitting = keys.filter((key) => algorithm === undefined || key.algorithm === algorithm);
  const byAddress = new Map(fitting.map((key) => [key.walletAddress, key]));
  const distinct = [...new Set(addresses)];
  const isRevoked = (address: string) => byAddress.get(address)?.status === 'Revoked';
  const usable = distinct.flatMap((address) => byAddress.get(address) ?? []);
  return {
    resolved: Object.fromEntries(
      usable.filter((key) => key.status !== 'Revoked').map((key) => [key.walletAddress, key]),
    ),
    notFound: distinct.filter((address) => !byAddress.has(address)),
    revoked: distinct.filter(isRevoked),
  };
}

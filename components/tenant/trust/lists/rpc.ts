import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { RpcHandlers, RpcPeer } from '#kit/rpc/rpc.ts';
import type { TrustListService } from '#protos/gen/chancery/tenant/v1/trust_lists_pb.js';
import { refusal } from '../../errors.ts';
import { freshnessOf } from './freshness.ts';
import type { TrustListDeps } from './import-list.ts';
import { findActive, listAnchors } from './store.ts';

/** Only the credential service evaluates issuers by trust lists. */
export function mayReadAnchors(peer: RpcPeer): boolean {
  return peer.clientId === 'service-credential';
}

/** A stale list has no roots in strict mode, so that a caller that overlooks the flags trusts nothing. */
export function trustListRpc(
  deps: Pick<TrustListDeps, 'db' | 'clock' | 'strictFreshness'>,
): RpcHandlers<(typeof TrustListService)['method']> {
  const { db, clock, strictFreshness: strict } = deps;
  return {
    getAnchors: async ({ trustListId }) => {
      const active = await findActive(db.read, trustListId);
      if (active === undefined) throw refusal('TRUSTLIST_UNAVAILABLE');
      const stale = freshnessOf(active, clock.nowMs()) === 'Stale';
      const anchors = stale && strict ? [] : await listAnchors(db.read, active);
      const { sequenceNumber, nextUpdateAtMs } = active;
      return {
        trustListId,
        sequenceNumber: BigInt(sequenceNumber),
        stale,
        strict,
        roots: anchors.map(({ der }) => der),
        ...(nextUpdateAtMs !== undefined && { nextUpdate: timestampFromMs(nextUpdateAtMs) }),
      };
    },
  };
}

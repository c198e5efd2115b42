import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { AppError, genericCode } from '#core/errors/errors.ts';
import { findCertificate as findStrict } from '#core/trust/certificate.ts';
import type { RpcHandlers, RpcPeer } from '#kit/rpc/rpc.ts';
import type { TrustListService } from '#protos/gen/chancery/tenant/v1/trust_lists_pb.js';
import { refusal } from '../../errors.ts';
import { freshnessOf } from './freshness.ts';
import type { TrustListDeps } from './import-list.ts';
import { findActive, findAnchorsOf, listActive, listAnchors } from './store.ts';
import { findCertificate, issuerOf } from './values/certificates.ts';

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
    findIssuers: async ({ certificate }) => {
      if (findStrict(certificate) === undefined)
        throw new AppError('invalid', genericCode('invalid'), 'no certificate in DER');
      const found = findCertificate(certificate);
      // Anyone may have written names that are no text; anchors with such names are on no list.
      const anchors = found === undefined ? [] : await findAnchorsOf(db.read, issuerOf(found));
      const active = await listActive(db.read);
      const lists = active.filter(({ trustListId }) =>
        anchors.some((each) => each.trustListId === trustListId),
      );
      return {
        issuers: lists.map((list) => {
          const stale = freshnessOf(list, clock.nowMs()) === 'Stale';
          const own = anchors.filter(({ trustListId }) => trustListId === list.trustListId);
          return {
            trustListId: list.trustListId,
            sequenceNumber: BigInt(list.sequenceNumber),
            stale,
            anchors: stale && strict ? [] : own.map(({ der }) => der),
          };
        }),
      };
    },
  };
}

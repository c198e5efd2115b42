import { identifier } from '#core/identity/identifier.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RpcHandlers, RpcPeer } from '#kit/rpc/rpc.ts';
import type { MembershipService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import type { TenantDatabase } from '../../database/schema.ts';
import { findMembershipIn } from './store.ts';

/** Only the wallet service asks: before it derives a key of an organisation for a person. */
export function mayFindMembers(peer: RpcPeer): boolean {
  return peer.clientId === 'service-wallet';
}

export function membershipRpc(
  read: Reader<TenantDatabase>,
): RpcHandlers<(typeof MembershipService)['method']> {
  return {
    findMember: async ({ organizationId, userId }) => {
      const [organization, user] = [identifier.safeParse(organizationId), identifier.safeParse(userId)];
      if (!organization.success || !user.success) return {};
      const member = await findMembershipIn(read, organization.data, user.data);
      return member?.isActive === true ? { platformUserId: member.platformUserId } : {};
    },
  };
}

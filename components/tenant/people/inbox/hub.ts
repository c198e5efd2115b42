import { SUBJECTS } from '#core/events/subjects.ts';
import type { Reader } from '#kit/db/db.ts';
import type { HubDeclaration } from '#kit/hub/hub.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { groupOf, inboxSignals, personOf } from './signals.ts';

/** Path of the tenant hub. */
export const tenantHubPath = '/hubs/tenant';

/** The hub of people: changes of their inboxes. A connection belongs to the group of its person from its start. */
export function tenantHub(db: Reader<TenantDatabase>): HubDeclaration<TenantDatabase> {
  return {
    path: tenantHubPath,
    subscriptions: [],
    groupsOf: ({ platformUserId }) => (platformUserId === undefined ? [] : [groupOf(platformUserId)]),
    log: {
      db,
      subject: SUBJECTS.tenantInboxes,
      signalsOf: (events, isHeld) => inboxSignals(db, events, isHeld),
      filterOf: (group) => ({ key: personOf(group) }),
    },
  };
}

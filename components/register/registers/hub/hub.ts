import { AppError, genericCode } from '#core/errors/errors.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import type { Caller } from '#core/identity/claims.ts';
import { identifier } from '#core/identity/identifier.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { Reader } from '#kit/db/db.ts';
import type { HubDeclaration, Subscription } from '#kit/hub/hub.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { getVisibleRegister } from '../state/access.ts';
import { registerGroup, registerOfGroup, tenantGroup } from './groups.ts';
import { signalsOf } from './signals.ts';

/** Path of the register hub. */
export const registerHubPath = '/hubs/register';

const organizationOf = (caller: Caller) => caller.organizationId ?? '';

/** The hub of registers: their creation and deletion, their dockets and transactions. */
export function registerHub(db: Reader<RegisterSchema>): HubDeclaration<RegisterSchema> {
  return {
    path: registerHubPath,
    subscriptions: [ofRegister(db), ofTenant],
    log: {
      db,
      subject: SUBJECTS.registerEvents,
      signalsOf: (events, isHeld) => signalsOf(db, events, isHeld),
      filterOf: (group) => {
        const registerId = registerOfGroup(group);
        return registerId === undefined
          ? { kinds: ['RegisterCreated', 'RegisterDeleted'] }
          : { key: registerId };
      },
    },
  };
}

/** Subscribers of a register follow it, and everyone the system register, which everyone may read. */
function ofRegister(db: Reader<RegisterSchema>): Subscription {
  return {
    subscribe: 'SubscribeToRegister',
    unsubscribe: 'UnsubscribeFromRegister',
    groupOf: (text) => {
      const registerId = findRegisterId(text);
      return registerId && registerGroup(registerId);
    },
    authorityOf: organizationOf,
    judge: async (caller, registerId) => {
      const { subscribed, purpose } = await getVisibleRegister(db, caller, registerId);
      if (!subscribed && purpose !== 'System') throw refusal('SUBSCRIPTION_REQUIRED');
    },
  };
}

const ofTenant: Subscription = {
  subscribe: 'SubscribeToTenant',
  unsubscribe: 'UnsubscribeFromTenant',
  groupOf: (text) => {
    const parsed = identifier.safeParse(text);
    return parsed.success ? tenantGroup(parsed.data) : undefined;
  },
  authorityOf: organizationOf,
  judge: async (caller, organizationId) => {
    if (organizationOf(caller) === organizationId.toLowerCase()) return;
    throw new AppError('forbidden', genericCode('forbidden'), 'The organisation is not yours.');
  },
};

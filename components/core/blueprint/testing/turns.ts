import { encodeRouting, INSTANCE_ID, ROUTING, type Routing } from '../steps/routing.ts';

export const TURNS_ID = 'turns';

/** A definition in which an open participant asks and a closed one answers, by turns, until the latter ends it. */
export function turnsDefinition(clerkAddress: string, title = 'Turns') {
  return {
    id: TURNS_ID,
    title,
    description: 'Asks and answers by turns',
    participants: [
      { id: 'asker', name: 'Asker' },
      { id: 'clerk', name: 'Clerk', walletAddress: clerkAddress },
    ],
    actions: [
      {
        id: 0,
        title: 'Ask',
        sender: 'asker',
        isStartingAction: true,
        routes: [{ id: 'sent', nextActionIds: [1], isDefault: true }],
      },
      {
        id: 1,
        title: 'Answer',
        sender: 'clerk',
        routes: [{ id: 'back', nextActionIds: [0], isDefault: true }],
        rejectionConfig: { targetActionId: 0, requireReason: false, isTerminal: false },
      },
    ],
  };
}

export interface Turn {
  readonly pin: string;
  readonly instanceId: string;
  /** 0 asks, 1 answers, 2 asks again ... */
  readonly seq: number;
  readonly askerAddress: string;
  /** Members of the routing that differ from the right ones. */
  readonly wrong?: Partial<Routing>;
}

/** The members of the transaction that takes a turn, besides its payload, times, predecessor and signature. */
export function turnOf({ pin, instanceId, seq, askerAddress, wrong }: Turn) {
  const asks = seq % 2 === 0;
  const next = [{ actionId: asks ? 1 : 0 }];
  const routing: Routing = {
    v: 1,
    instanceId,
    blueprintDefinitionTxId: pin,
    seq,
    completedActionId: asks ? 0 : 1,
    routeId: asks ? 'sent' : 'back',
    nextActions: next,
    current: next,
    roles: { asker: askerAddress },
    ...wrong,
  };
  return {
    type: 'Action',
    blueprintId: TURNS_ID,
    actionId: asks ? '0' : '1',
    metadata: { [INSTANCE_ID]: instanceId, [ROUTING]: encodeRouting(routing) },
  } as const;
}

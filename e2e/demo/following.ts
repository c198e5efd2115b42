import { HttpTransportType, HubConnectionBuilder, HubConnectionState, LogLevel } from '@microsoft/signalr';
import type { Api } from '../harness/api.ts';
import type { Person } from '../harness/governance.ts';
import { until } from '../harness/wait.ts';
import { application } from '../harness/workflow.ts';
import { duration, type Steps } from './steps.ts';

/** What the parties of the workflow are told, by hub. */
const targets = {
  blueprint: [
    'ActionAvailable',
    'ActionConfirmed',
    'ActionRejected',
    'InstanceAdvanced',
    'WorkflowCompleted',
  ],
  tenant: ['InboxEntryAdded'],
  register: ['DocketSealed'],
} as const;
const retryMs = 500;
const deadlineMs = 15_000;

interface Signal {
  readonly target: string;
  readonly args: readonly unknown[];
  /** From the start of the transaction that it tells of. */
  readonly delayMs: number;
}

/** A client of one hub, which comes back by itself and asks for what it missed. */
interface Client {
  readonly signals: readonly Signal[];
  isConnected(): boolean;
  stop(): Promise<void>;
}

/** Clients of a party at all of its hubs. */
export interface Followed {
  readonly party: string;
  readonly clients: readonly Client[];
}

interface Subscription {
  readonly method: string;
  readonly subject: string;
}

async function connect(
  api: Api,
  token: string,
  hub: keyof typeof targets,
  subscription?: Subscription,
): Promise<Client> {
  const connection = new HubConnectionBuilder()
    .withUrl(String(new URL(`/hubs/${hub}`, api.baseUrl)), {
      accessTokenFactory: () => token,
      transport: HttpTransportType.WebSockets,
    })
    .withAutomaticReconnect({ nextRetryDelayInMilliseconds: () => retryMs })
    .configureLogging(LogLevel.None)
    .build();
  const signals: Signal[] = [];
  let seen: string | null = null;
  for (const target of targets[hub]) {
    connection.on(target, (...args: unknown[]) => {
      seen = String(args.at(-2));
      signals.push({ target, args, delayMs: Date.now() - Date.parse(seen) });
    });
  }
  const subscribe = async () => {
    if (subscription !== undefined) await connection.invoke(subscription.method, subscription.subject, seen);
  };
  // A subscription that fails shows as a signal that does not come.
  connection.onreconnected(() => void subscribe().catch(() => undefined));
  await connection.start();
  await subscribe();
  return {
    signals,
    isConnected: () => connection.state === HubConnectionState.Connected,
    stop: () => connection.stop(),
  };
}

/** Each party follows its wallet and its inbox, the planning office also the register. */
export async function followParties(
  steps: Steps,
  api: Api,
  {
    parties,
    registerId,
  }: { readonly parties: Readonly<Record<string, Person>>; readonly registerId: string },
): Promise<readonly Followed[]> {
  return steps.run('follow it as each party, through the gateway', async () => {
    const followed: Followed[] = [];
    for (const [party, { token, wallet }] of Object.entries(parties)) {
      const own = { method: 'SubscribeToWallet', subject: wallet.walletAddress };
      const clients = [await connect(api, token, 'blueprint', own), await connect(api, token, 'tenant')];
      followed.push({ party, clients });
    }
    const office = followed.find(({ party }) => party === 'planning office');
    if (office === undefined) throw new Error('no planning office');
    const subscription = { method: 'SubscribeToRegister', subject: registerId };
    const atRegister = await connect(api, parties['planning office']?.token ?? '', 'register', subscription);
    const all = followed.map((one) =>
      one === office ? { ...one, clients: [...one.clients, atRegister] } : one,
    );
    return [`${all.map(({ party }) => party).join(', ')}: wallets, inboxes, the register`, all];
  });
}

/** Compares what the parties were told with what happened. */
export async function compareSignals(steps: Steps, followed: readonly Followed[]): Promise<void> {
  await steps.run('see what the hubs told them', async () => {
    const wanted: readonly string[] = Object.values(targets).flat();
    const heard = () => followed.flatMap(({ clients }) => clients.flatMap(({ signals }) => signals));
    await until('each kind of signal', deadlineMs, async () => {
      const kinds = new Set(heard().map(({ target }) => target));
      return wanted.every((target) => kinds.has(target)) ? true : undefined;
    });
    const signals = heard();
    const content = JSON.stringify(signals.map(({ args }) => args));
    if (content.includes(application.siteReference)) throw new Error('a signal has content');
    const slowest = Math.max(...signals.map(({ delayMs }) => delayMs));
    return [
      `${signals.length} signals of ${wanted.length} kinds, ids alone; the slowest after ${duration(slowest)}`,
      undefined,
    ];
  });
}

/** Waits until a party's client has come back and was told of an action of an instance. */
export async function hearAgain(
  steps: Steps,
  followed: readonly Followed[],
  {
    party,
    instanceId,
    actionId,
  }: { readonly party: string; readonly instanceId: string; readonly actionId: number },
): Promise<void> {
  await steps.run('its clients come back by themselves and ask for what they missed', async () => {
    const clients = followed.find((one) => one.party === party)?.clients ?? [];
    await until('the signal of the action', deadlineMs, async () => {
      const told = clients
        .flatMap(({ signals }) => signals)
        .some(
          ({ target, args }) =>
            target === 'ActionAvailable' && args[0] === instanceId && args[1] === String(actionId),
        );
      return told && followed.every((one) => one.clients.every((client) => client.isConnected()))
        ? true
        : undefined;
    });
    return [`the ${party} was told of action ${actionId}`, undefined];
  });
}

export async function stopFollowing(followed: readonly Followed[]): Promise<void> {
  await Promise.all(followed.flatMap(({ clients }) => clients.map((client) => client.stop())));
}

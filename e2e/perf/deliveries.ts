import { createHash } from 'node:crypto';
import pg from 'pg';
import {
  barePlans,
  type ClientPlan,
  type Crowd,
  connectCrowd,
  connectSocketIo,
  hubGreetings,
} from './hubs/crowd.ts';
import { cpuSeconds } from './process-cpu.ts';
import { type RawProgram, startRaw } from './raw/child.ts';
import type { Row } from './report.ts';
import type { Stage } from './stage.ts';

export const clients = 1_000;
export const clientsPerUser = 20;
/** Rounds that count, and those before them. */
interface Rounds {
  readonly rounds: number;
  readonly warmUp: number;
}

const judged: Rounds = { rounds: 5, warmUp: 2 };
const printed: Rounds = { rounds: 2, warmUp: 1 };
const everyone = 'everyone';
/** Signals to all clients in a round. */
const toAll = 100;
/** Signals to each client's own group in a round. */
const toEach = 40;

/** What one program did in one round. */
export interface Fanned {
  readonly perSecond: number;
  /** CPU of the server process for one delivery. */
  readonly cpuMicros: number;
}

/** Figures of both sides, in pairs. */
export interface FannedPairs {
  readonly ours: Fanned[];
  readonly raw: Fanned[];
}

/** Deliveries per second from the first act until every client has its share. */
export async function fan(
  crowd: Crowd,
  { pid, records }: { readonly pid: number; readonly records: number },
  act: () => Promise<unknown>,
): Promise<Fanned> {
  const { reached } = await crowd.expect(records);
  const cpu = cpuSeconds(pid);
  const startedAt = performance.now();
  await act();
  await reached;
  const seconds = (performance.now() - startedAt) / 1000;
  return { perSecond: records / seconds, cpuMicros: ((cpuSeconds(pid) - cpu) / records) * 1e6 };
}

/** Rows of a fan-out with its bound, if it has one, and the CPU of the server beside it. */
export function fannedRows(measure: string, { ours, raw }: FannedPairs, atLeast?: number): readonly Row[] {
  return [
    {
      measure,
      ours: ours.map(({ perSecond }) => perSecond),
      raw: raw.map(({ perSecond }) => perSecond),
      unit: '/s',
      bound: atLeast === undefined ? { kind: 'printed' } : { kind: 'share', atLeast },
    },
    {
      measure: `${measure}: CPU of the server`,
      ours: ours.map(({ cpuMicros }) => cpuMicros),
      raw: raw.map(({ cpuMicros }) => cpuMicros),
      unit: 'us',
      bound: { kind: 'printed' },
    },
  ];
}

/** Takes turns, the other one first in every second round. */
export async function inTurns(
  pairs: FannedPairs,
  ours: () => Promise<Fanned>,
  raw: () => Promise<Fanned>,
  { rounds, warmUp }: Rounds = judged,
) {
  for (let n = 0; n < warmUp + rounds; n++) {
    const both: Fanned[] = [];
    const acts = [ours, raw];
    for (const place of n % 2 === 0 ? [0, 1] : [1, 0]) {
      const act = acts[place];
      if (act !== undefined) both[place] = await act();
    }
    const [one, other] = both;
    if (n < warmUp || one === undefined || other === undefined) continue;
    pairs.ours.push(one);
    pairs.raw.push(other);
  }
}

/** A program that sends the same messages as the hub, and its clients. */
interface Other {
  readonly rounds: Rounds;
  readonly program: RawProgram;
  readonly crowd: Crowd;
}

/** A hub, a bare server and socket.io, each with its clients. */
interface Rooms {
  readonly hub: RawProgram;
  readonly ofHub: Crowd;
  readonly bare: Other;
  readonly socketIo: Other;
  readonly database: pg.Client;
}

const schema = 'bench_rooms';

function planOf(_: unknown, n: number): ClientPlan {
  const user = `user-${Math.floor(n / clientsPerUser)}`;
  const path = `/hubs/rooms?access_token=${user}`;
  return { path, ...hubGreetings('Enter', [everyone, `own-${n}`]) };
}

/** Starts the hub on the event log of `schema`. */
export async function startRoomHub(databaseUrl: string): Promise<RawProgram> {
  return startRaw(new URL('./hubs/room-hub.ts', import.meta.url), { databaseUrl, schema });
}

/** Plans of clients of the hub of `startRoomHub`: each in a room of its own and in one with all others. */
export function roomPlans(count: number): readonly ClientPlan[] {
  return Array.from({ length: count }, planOf);
}

async function openRooms(stage: Stage): Promise<Rooms> {
  const hub = await startRoomHub(stage.rawDatabaseUrl);
  const ofHub = await connectCrowd(Number(hub.said), roomPlans(clients));
  const bareServer = await startRaw(new URL('./raw/broadcast.ts', import.meta.url), {});
  const bare = {
    rounds: judged,
    program: bareServer,
    crowd: await connectCrowd(Number(bareServer.said), barePlans(clients)),
  };
  const peer = await startRaw(new URL('./raw/socket-io.ts', import.meta.url), {});
  const socketIo = {
    rounds: printed,
    program: peer,
    crowd: await connectSocketIo(Number(peer.said), clients),
  };
  const database = new pg.Client({
    connectionString: stage.rawDatabaseUrl,
    options: `-c search_path=${schema}`,
  });
  await database.connect();
  return { hub, ofHub, bare, socketIo, database };
}

async function closeRooms({ hub, ofHub, bare, socketIo, database }: Rooms): Promise<void> {
  await Promise.all([ofHub, bare.crowd, socketIo.crowd].map((crowd) => crowd.stop()));
  await database.end();
  await Promise.all([hub, bare.program, socketIo.program].map((program) => program.stop()));
}

/** Each row is committed when the first client has the one before; meanwhile the others still get theirs. */
async function toOneGroup({ hub, ofHub, database }: Rooms, other: Other): Promise<FannedPairs> {
  let messages: string[] = [];
  const insert = {
    name: 'say',
    text: `insert into outbox (kind, key, data) values ('TransactionConfirmed', $1,
      jsonb_build_object('txId', encode(sha256(convert_to($2, 'UTF8')), 'hex'), 'traceId', md5($2)))`,
  };
  const say = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) {
      const heard = new Promise<void>((resolve) =>
        ofHub.onMessage((text) => {
          messages.push(text);
          resolve();
        }),
      );
      await database.query({ ...insert, values: [everyone, String(n)] });
      hub.send('wake');
      await heard;
    }
  };
  const records = toAll * clients;
  const pairs: FannedPairs = { ours: [], raw: [] };
  await fan(ofHub, { pid: hub.pid, records }, () => say(toAll));
  await inTurns(
    pairs,
    () => {
      messages = [];
      return fan(ofHub, { pid: hub.pid, records }, () => say(toAll));
    },
    async () => {
      await other.program.tell(JSON.stringify({ all: messages }));
      return fanOther(other, records);
    },
    other.rounds,
  );
  return pairs;
}

function fanOther({ program, crowd }: Other, records: number): Promise<Fanned> {
  return fan(crowd, { pid: program.pid, records }, () => program.tell('send'));
}

/** All rows are committed at once, those of a group far apart. */
async function toOwnGroups({ hub, ofHub, database }: Rooms, other: Other): Promise<FannedPairs> {
  const records = toEach * clients;
  const insert = `insert into outbox (kind, key, data)
    select 'TransactionConfirmed', 'own-' || n % ${clients},
      jsonb_build_object('txId', encode(sha256(convert_to(n::text, 'UTF8')), 'hex'), 'traceId', md5(n::text))
    from generate_series(0, ${records - 1}) n`;
  const pairs: FannedPairs = { ours: [], raw: [] };
  const messages = Array.from({ length: records }, (_, n) => messageTo(n));
  await other.program.tell(JSON.stringify({ each: messages }));
  const ours = async () => {
    await database.query('begin');
    await database.query(insert);
    return fan(ofHub, { pid: hub.pid, records }, async () => {
      await database.query('commit');
      hub.send('wake');
    });
  };
  await inTurns(pairs, ours, () => fanOther(other, records), other.rounds);
  return pairs;
}

/** The record of a row of `toOwnGroups`, with the name of its client at the bare server. */
function messageTo(n: number): readonly [string, string] {
  const hash = (algorithm: string) => createHash(algorithm).update(String(n)).digest('hex');
  const to = n % clients;
  const args = [`own-${to}`, hash('sha256'), new Date().toISOString(), hash('md5')];
  return [`/${to}`, `${JSON.stringify({ type: 1, target: 'TransactionConfirmed', arguments: args })}\u001e`];
}

/** Signals from rows of an event log to a thousand clients in one group, and in a group each. */
export async function deliveries(stage: Stage): Promise<readonly Row[]> {
  const rooms = await openRooms(stage);
  try {
    const [one, own] = [
      `deliveries, ${clients} clients in one group`,
      `deliveries, ${clients} groups of one client`,
    ];
    return [
      ...fannedRows(one, await toOneGroup(rooms, rooms.bare), 0.8),
      ...fannedRows(`${one}, against socket.io`, await toOneGroup(rooms, rooms.socketIo)),
      ...fannedRows(own, await toOwnGroups(rooms, rooms.bare), 0.6),
      ...fannedRows(`${own}, against socket.io`, await toOwnGroups(rooms, rooms.socketIo)),
    ];
  } finally {
    await closeRooms(rooms);
  }
}

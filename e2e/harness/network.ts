import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Treatment of bytes between two validators. */
export interface LinkRule {
  readonly delayMs?: number;
  /** The delay varies by this amount in both directions; bytes of one connection stay in order. */
  readonly jitterMs?: number;
  /** Share of chunks that arrive late, as after a retransmission of TCP: 0 to 1. */
  readonly loss?: number;
  /** Nothing arrives until the rule changes; connections stay open, as with an unplugged cable. */
  readonly cut?: boolean;
}

/** The network between validators: each listens behind a proxy of its own, which identifies its callers. Linux only. */
export interface FaultyNetwork {
  /** The address that each validator announces, by its id. */
  readonly endpoints: Readonly<Record<string, string>>;
  /** Sets the rule from one validator to another; `*` stands for all of them. */
  rule(from: string, to: string, rule: LinkRule): void;
  /** Cuts all connections between validators of different groups. */
  partition(...groups: readonly (readonly string[])[]): void;
  /** Removes every rule. */
  heal(): void;
  close(): Promise<void>;
}

export interface NetworkMember {
  readonly id: string;
  /** The process of the member; it may change with a restart. */
  readonly pid: () => number | undefined;
  /** The port that the member listens on; callers wait while it is undefined. */
  readonly port: () => number | undefined;
}

const retransmissionMs = 200;
const knownEveryMs = 20;

/** Opens the network. The members may start later: ports and processes are looked up at each connection. */
export async function openFaultyNetwork(members: readonly NetworkMember[]): Promise<FaultyNetwork> {
  const rules = new Map<string, LinkRule>();
  const pipes = new Set<Pipe>();
  const ruleFor = (from: string, to: string): LinkRule => rules.get(`${from}>${to}`) ?? {};
  const servers = await Promise.all(members.map((member) => listen(member, members, ruleFor, pipes)));
  const ids = members.map(({ id }) => id);
  const pairs = ids.flatMap((from) => ids.filter((to) => to !== from).map((to) => ({ from, to })));
  const set = (ruleOf: (from: string, to: string) => LinkRule | undefined): void => {
    for (const { from, to } of pairs) {
      const rule = ruleOf(from, to);
      if (rule !== undefined) rules.set(`${from}>${to}`, rule);
    }
    for (const pipe of pipes) pipe.wake();
  };
  const groupIn = (groups: readonly (readonly string[])[], id: string) =>
    groups.findIndex((group) => group.includes(id));
  return {
    endpoints: Object.fromEntries(servers.map(({ id, port }) => [id, `127.0.0.1:${port}`])),
    rule: (one, other, rule) =>
      set((from, to) => ([from, '*'].includes(one) && [to, '*'].includes(other) ? rule : undefined)),
    partition: (...groups) => set((from, to) => ({ cut: groupIn(groups, from) !== groupIn(groups, to) })),
    heal: () => set(() => ({})),
    close: async () => {
      for (const pipe of pipes) pipe.end();
      await Promise.all(servers.map(({ server }) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

async function listen(
  member: NetworkMember,
  members: readonly NetworkMember[],
  ruleFor: (from: string, to: string) => LinkRule,
  pipes: Set<Pipe>,
): Promise<{ id: string; port: number; server: Server }> {
  const join = (caller: Socket): void => {
    if (caller.destroyed) return;
    const port = member.port();
    if (port === undefined) {
      setTimeout(join, knownEveryMs, caller);
      return;
    }
    const from = callerOf(caller, members) ?? 'outside';
    const target = connect({ host: '127.0.0.1', port });
    const there = new Pipe(caller, target, () => ruleFor(from, member.id));
    const back = new Pipe(target, caller, () => ruleFor(member.id, from));
    for (const pipe of [there, back]) {
      pipes.add(pipe);
      pipe.onEnd = () => pipes.delete(pipe);
    }
  };
  const server = createServer((caller) => {
    caller.on('error', () => caller.destroy());
    join(caller);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { id: member.id, port: (server.address() as AddressInfo).port, server };
}

/** One direction of one connection. */
class Pipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #rule: () => LinkRule;
  readonly #chunks: { readonly bytes: Buffer; readonly dueAt: number }[] = [];
  #lastDueAt = 0;
  #timer: NodeJS.Timeout | undefined;
  onEnd: () => void = () => {};

  constructor(from: Socket, to: Socket, rule: () => LinkRule) {
    this.#from = from;
    this.#to = to;
    this.#rule = rule;
    from.setNoDelay(true);
    from.on('data', (bytes: Buffer) => this.#take(bytes));
    for (const socket of [from, to]) {
      socket.on('error', () => this.end());
      socket.on('close', () => this.end());
    }
  }

  wake(): void {
    this.#deliver();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#from.destroy();
    this.#to.destroy();
    this.onEnd();
  }

  #take(bytes: Buffer): void {
    const { delayMs = 0, jitterMs = 0, loss = 0 } = this.#rule();
    const varied = delayMs + (Math.random() * 2 - 1) * jitterMs;
    const late = Math.random() < loss ? retransmissionMs + 2 * delayMs : 0;
    this.#lastDueAt = Math.max(this.#lastDueAt, performance.now() + Math.max(0, varied) + late);
    this.#chunks.push({ bytes, dueAt: this.#lastDueAt });
    this.#deliver();
  }

  #deliver(): void {
    clearTimeout(this.#timer);
    if (this.#rule().cut === true) return;
    for (let next = this.#chunks[0]; next !== undefined; next = this.#chunks[0]) {
      const waitMs = next.dueAt - performance.now();
      if (waitMs > 0.5) {
        this.#timer = setTimeout(() => this.#deliver(), waitMs);
        return;
      }
      this.#chunks.shift();
      if (!this.#to.destroyed) this.#to.write(next.bytes);
    }
  }
}

/** The member whose process holds the other end of a connection. */
function callerOf(socket: Socket, members: readonly NetworkMember[]): string | undefined {
  const inode = inodeOf(socket.remotePort ?? 0, socket.localPort ?? 0);
  if (inode === undefined) return undefined;
  const wanted = `socket:[${inode}]`;
  return members.find((member) => {
    const pid = member.pid();
    return pid !== undefined && opens(pid, wanted);
  })?.id;
}

/** The inode of the socket that is bound to one port and connected to another, from the kernel's table. */
function inodeOf(localPort: number, remotePort: number): string | undefined {
  const port = (text: string | undefined) => Number.parseInt(text?.split(':')[1] ?? '', 16);
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of readFileSync(table, 'utf8').split('\n').slice(1)) {
      const fields = line.trim().split(/\s+/);
      if (port(fields[1]) === localPort && port(fields[2]) === remotePort) return fields[9];
    }
  }
  return undefined;
}

function opens(pid: number, wanted: string): boolean {
  try {
    const directory = `/proc/${pid}/fd`;
    return readdirSync(directory).some((name) => {
      try {
        return readlinkSync(`${directory}/${name}`) === wanted;
      } catch {
        return false;
      }
    });
  } catch {
    return false;
  }
}

import { connect, headers, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { type Bus, connectBus } from './bus.ts';

/** A NATS server under test; a restart keeps its address. */
export interface BusServer {
  readonly url: string;
  stop(): Promise<void>;
  restart(): Promise<void>;
}

/** What every server behind NATS_URL must do, tested through the bus and through the official client. */
export function busContract(name: string, start: () => Promise<BusServer>): void {
  describe(`bus: ${name}`, () => {
    const runtime = testRuntime('test');
    let server: BusServer | undefined;
    let raw: NatsConnection | undefined;
    let buses: Bus[] = [];
    const running = (): BusServer => {
      if (server === undefined) throw new Error('not started');
      return server;
    };
    const client = async (): Promise<NatsConnection> => {
      raw ??= await connect({ servers: running().url, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
      return raw;
    };
    const open = async (): Promise<Bus> => {
      const bus = await connectBus({ url: running().url, name: 'test', log: runtime.log });
      buses.push(bus);
      return bus;
    };

    beforeAll(async () => {
      server = await start();
    }, 30_000);
    afterAll(async () => {
      await raw?.close();
      await Promise.all(buses.map((bus) => bus.close()));
      await server?.stop();
      buses = [];
    });

    describe('official client', () => {
      it('publishes and subscribes with payload and headers', async () => {
        const nc = await client();
        const sub = nc.subscribe('a.b', { max: 1 });
        const meta = headers();
        meta.set('traceparent', 'x');
        nc.publish('a.b', 'hello', { headers: meta });
        for await (const message of sub) {
          expect(message.string()).toBe('hello');
          expect(message.headers?.get('traceparent')).toBe('x');
        }
      });

      it('carries payloads of every size in one burst, in order', async () => {
        const nc = await client();
        const sub = nc.subscribe('sizes', { max: 300 });
        for (let at = 0; at < 300; at += 1) nc.publish('sizes', new Uint8Array(at * 7).fill(at));
        let expected = 0;
        for await (const message of sub) {
          expect(message.data.length).toBe(expected * 7);
          expected += 1;
        }
        expect(expected).toBe(300);
      });

      it('matches wildcards', async () => {
        const nc = await client();
        const seen: string[] = [];
        for (const pattern of ['w.*.c', 'w.>', '*.x.c', 'w.x']) {
          nc.subscribe(pattern, {
            callback: (_error, message) => {
              seen.push(`${pattern} ${message.subject}`);
            },
          });
        }
        for (const subject of ['w', 'w.x', 'w.x.c', 'w.x.c.d', 'v.x.c']) nc.publish(subject);
        await nc.flush();
        expect(seen.sort()).toEqual(
          [
            'w.> w.x',
            'w.x w.x',
            'w.*.c w.x.c',
            'w.> w.x.c',
            '*.x.c w.x.c',
            'w.> w.x.c.d',
            '*.x.c v.x.c',
          ].sort(),
        );
      });

      it('gives a queue group each message once', async () => {
        const nc = await client();
        const counts = [0, 0, 0];
        for (const at of counts.keys()) {
          nc.subscribe('work', {
            queue: 'group',
            callback: () => {
              counts[at] = (counts[at] ?? 0) + 1;
            },
          });
        }
        let plain = 0;
        nc.subscribe('work', {
          callback: () => {
            plain += 1;
          },
        });
        for (let at = 0; at < 90; at += 1) nc.publish('work');
        await nc.flush();
        expect(counts.reduce((sum, count) => sum + count, 0)).toBe(90);
        expect(plain).toBe(90);
        expect(Math.min(...counts)).toBeGreaterThan(0);
      });

      it('ends a subscription after its maximum, and at once', async () => {
        const nc = await client();
        let count = 0;
        const counted = {
          callback: () => {
            count += 1;
          },
        };
        nc.subscribe('limited', { ...counted, max: 3 });
        const other = nc.subscribe('limited', counted);
        other.unsubscribe();
        for (let at = 0; at < 10; at += 1) nc.publish('limited');
        await nc.flush();
        expect(count).toBe(3);
      });

      it('answers requests, and reports at once when there is no subscriber', async () => {
        const nc = await client();
        nc.subscribe('echo', { callback: (_error, message) => void message.respond(message.data) });
        expect((await nc.request('echo', 'ping', { timeout: 2_000 })).string()).toBe('ping');
        const startedAt = performance.now();
        await expect(nc.request('nobody', '', { timeout: 5_000 })).rejects.toThrow(/no responders/i);
        expect(performance.now() - startedAt).toBeLessThan(2_000);
      });

      it('does not echo messages to a client that disables echo', async () => {
        const nc = await connect({ servers: running().url, noEcho: true });
        let count = 0;
        nc.subscribe('own', {
          callback: () => {
            count += 1;
          },
        });
        nc.publish('own');
        await nc.flush();
        expect(count).toBe(0);
        await nc.close();
      });
    });

    describe('wake signals', () => {
      it('notify the listeners of a subject and of patterns', async () => {
        const [one, two] = [await open(), await open()];
        let rings = 0;
        let patterns = 0;
        two.subscribe('doorbell.a', () => {
          rings += 1;
        });
        two.subscribe('doorbell.>', () => {
          patterns += 1;
        });
        await waitFor(() => {
          one.publish('doorbell.a');
          return rings > 0 && patterns > 0;
        });
      });

      it('an unsubscribed listener is not called; one that throws does not affect others', async () => {
        const bus = await open();
        let silent = 0;
        let heard = 0;
        const end = bus.subscribe('doorbell.b', () => {
          silent += 1;
        });
        bus.subscribe('doorbell.b', () => {
          throw new Error('mine');
        });
        bus.subscribe('doorbell.b', () => {
          heard += 1;
        });
        end();
        end();
        await waitFor(() => {
          bus.publish('doorbell.b');
          return heard > 1;
        });
        expect(silent).toBe(0);
      });

      it('continue after the server was away; listeners are notified once for what they missed', async () => {
        const [one, two] = [await open(), await open()];
        let rings = 0;
        two.subscribe('doorbell.c', () => {
          rings += 1;
        });
        await waitFor(() => {
          one.publish('doorbell.c');
          return rings > 0;
        });
        await running().stop();
        await waitFor(() => !one.connected && !two.connected);
        for (let at = 0; at < 5_000; at += 1) one.publish(`doorbell.lost.${at}`);
        rings = 0;
        await running().restart();
        await waitFor(() => one.connected && two.connected);
        expect(rings).toBeGreaterThan(0);
        rings = 0;
        await waitFor(() => {
          one.publish('doorbell.c');
          return rings > 0;
        });
      }, 30_000);

      it('publishing after close is harmless', async () => {
        const bus = await connectBus({ url: running().url, name: 'test', log: runtime.log });
        await bus.close();
        bus.publish('doorbell.d');
        expect(bus.connected).toBe(false);
      });
    });
  });
}

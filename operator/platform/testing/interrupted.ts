import { AppError } from '#core/errors/errors.ts';

/** What becomes of one call: its question is lost before anything happens, or its answer afterwards. */
export type Interruption = 'request' | 'response' | undefined;

/** Told at once, or after the time that a silent service takes. */
export type Interrupting = Interruption | Promise<Interruption>;

/** The same port, some of whose calls break off: the caller cannot tell whether they were carried out. */
export function withInterruptions<Port extends object>(
  port: Port,
  when: (call: string) => Interrupting,
): Port {
  return new Proxy(port, {
    get: (target, name, receiver) => {
      const member: unknown = Reflect.get(target, name, receiver);
      if (typeof member !== 'function' || typeof name !== 'string') return member;
      return async (...given: readonly unknown[]) => {
        const interruption = await when(name);
        if (interruption === 'request') throw broken(name);
        const answer: unknown = await Reflect.apply(member, target, given);
        if (interruption === 'response') throw broken(name);
        return answer;
      };
    },
  });
}

function broken(name: string): AppError {
  return new AppError('unavailable', 'SERVICE_UNREACHABLE', `the connection broke during ${name}`);
}

import type { z } from 'zod';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { decide, type PolicyName } from '#core/identity/policies.ts';
import type { RateLimiter } from '#kit/rate-limit/rate-limit.ts';
import type { Behaviour } from './behaviour.ts';
import type { HubClient, Invocation, InvokedStream } from './calls.ts';
import { notStreamed, unknownMethod, wrongArguments } from './method-errors.ts';

/** The caller of a method, and how the method answers besides its result. */
interface HubCall {
  readonly client: HubClient;
  /** Absent when the client takes one result. */
  readonly stream: InvokedStream | undefined;
}

/** A method with a result, whose arguments are parsed. */
export interface HubMethod {
  readonly name: string;
  /** Errors: invalid/INVALID_ARGUMENTS, invalid/HUB_METHOD_NOT_STREAMED, those of the method. */
  invoke(call: HubCall, args: readonly unknown[]): Promise<unknown>;
}

export interface MethodOptions<Args extends readonly unknown[]> {
  readonly name: string;
  /** Names of the arguments, for the refusal of others: `sessionId, format`. */
  readonly parameters: string;
  /** A tuple. */
  readonly arguments: z.ZodType<Args>;
  /** Whether clients may take its results one by one. Invocations that follow do not wait for the end of a stream. */
  readonly isStreamed?: true;
  /**
   * The result answers the client; that of a stream is dropped.
   * @throws AppError, whose text answers the client
   */
  run(call: HubCall, args: Args): Promise<unknown>;
}

/** Declares a method. */
export function hubMethod<Args extends readonly unknown[]>(options: MethodOptions<Args>): HubMethod {
  const { name, parameters } = options;
  return {
    name,
    invoke: async (call, args) => {
      if (call.stream !== undefined && options.isStreamed !== true) throw notStreamed(name);
      const parsed = options.arguments.safeParse(args);
      if (!parsed.success) throw wrongArguments(`${name}(${parameters})`);
      return await options.run(call, parsed.data);
    },
  };
}

interface MethodsOptions {
  readonly path: string;
  /** Requirement of callers besides that of every hub. */
  readonly policy: PolicyName;
  readonly methods: readonly HubMethod[];
  /** Counts the invocations of a user by the policy `Api`. */
  readonly limiter: Pick<RateLimiter, 'take'>;
}

/** Connections that call methods and get the events that these lead to. */
export class Methods implements Behaviour {
  readonly #options: MethodsOptions;
  readonly #methods: ReadonlyMap<string, HubMethod>;

  constructor(options: MethodsOptions) {
    this.#options = options;
    this.#methods = new Map(options.methods.map((method) => [method.name, method]));
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {}

  /** Errors: forbidden. */
  assertMayConnect(caller: Caller): void {
    if (decide(this.#options.policy, caller) === 'allow') return;
    throw new AppError('forbidden', genericCode('forbidden'), 'You may not do this.');
  }

  async opened(): Promise<void> {}

  /** A later token of the user may have fewer rights than the one that opened the connection. */
  async invoke(client: HubClient, { target, args, stream }: Invocation): Promise<unknown> {
    this.assertMayConnect(client.caller);
    const { path, limiter } = this.#options;
    limiter.take('Api', `${path} ${client.userId}`);
    const method = this.#methods.get(target);
    if (method === undefined) throw unknownMethod();
    return await method.invoke({ client, stream }, args);
  }

  ended(): void {}
}

import type { RegisterChain } from '../sealing/register-chain.ts';

/** The registers that this validator runs, by id. */
export class RegisterTable {
  readonly #registers = new Map<string, RegisterChain>();

  get(registerId: string): RegisterChain | undefined {
    return this.#registers.get(registerId);
  }

  all(): Iterable<RegisterChain> {
    return this.#registers.values();
  }

  get size(): number {
    return this.#registers.size;
  }

  add(register: RegisterChain): void {
    this.#registers.set(register.id, register);
  }

  remove(registerId: string): void {
    this.#registers.delete(registerId);
  }
}

import { z } from 'zod';
import type { Service } from './transport.ts';

/** The wallet service as the operator uses it. */
export interface Wallets {
  /** Ensures the operator's wallet and returns its address, which never changes. */
  ensure(signal?: AbortSignal): Promise<string>;
}

/** One wallet of the operator serves all registers of an installation. */
const path = '/api/internal/service-wallets/registers';

const walletSchema = z.object({ walletAddress: z.string().length(61) });

/** The wallet service over HTTP; errors are those of Service.call. */
export function walletsOf(service: Service): Wallets {
  let known: string | undefined;
  return {
    ensure: async (signal) => {
      if (known !== undefined) return known;
      const { walletAddress } = await service.call({ method: 'PUT', path, body: {}, signal }, walletSchema);
      known = walletAddress;
      return walletAddress;
    },
  };
}

import { type Connections, peerTimeoutMs } from '../../network/peers/connections.ts';

/** Changes the configuration of other validators. */
export interface ConfigurationClient {
  /** Changes the validator's configuration in the name of a system administrator. */
  configure(
    validatorId: string,
    order: { readonly patch: Uint8Array; readonly subjectToken: string },
  ): Promise<void>;
}

export function createConfigurationClient(connections: Pick<Connections, 'to'>): ConfigurationClient {
  return {
    async configure(validatorId, { patch, subjectToken }) {
      const { admin } = await connections.to(validatorId);
      await admin.configure({ patchJson: patch }, { timeoutMs: peerTimeoutMs, subjectToken });
    },
  };
}

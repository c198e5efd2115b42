import { run } from '#kit/lifecycle/lifecycle.ts';
import { createWallet } from './compose.ts';
import { walletSettings } from './config.ts';

await run({ service: 'service-wallet', schema: walletSettings, create: createWallet });

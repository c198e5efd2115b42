import { set, startManaged } from '../../components/register/registers/managed/managed.fixture.ts';
import { organizationId } from '../../components/register/testing/register.ts';
import { operatorOf } from '../../components/tenant/organizations/managed/managed.fixture.ts';
import { startTestTenant } from '../../components/tenant/tenant.fixture.ts';
import { organizationsOf } from './organizations.ts';
import { registersOf } from './registers.ts';
import { injectedService } from './testing/injected-service.ts';
import { organizationsContract } from './testing/organizations.contract.ts';
import { registersContract } from './testing/registers.contract.ts';

organizationsContract('the tenant service', async () => {
  const tenant = await startTestTenant('operator_organizations');
  const operator = await operatorOf(tenant);
  const service = injectedService(async ({ method, path, body }) => {
    const answer = await operator.call(method, path, body as object | undefined);
    return { status: answer.statusCode, body: answer.body === '' ? undefined : answer.json() };
  });
  return { organizations: organizationsOf(service), stop: () => tenant.stop() };
});

registersContract('the register service', async () => {
  const managed = await startManaged('operator_registers');
  const service = injectedService(async ({ method, path, body }) => {
    const { status, body: answer } = await managed.register.call(method, path, { token: 'operator', body });
    return { status, body: answer };
  });
  return {
    registers: registersOf(service),
    organizationId,
    validators: set,
    seal: (registerId) => managed.sealed(registerId),
    stop: () => managed.register.stop(),
  };
});

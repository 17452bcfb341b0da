import nock from 'nock';
import { MockAgent, setGlobalDispatcher } from 'undici';

nock.disableNetConnect();
nock.enableNetConnect('127.0.0.1');
setGlobalDispatcher(new MockAgent());

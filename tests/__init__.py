from tests import typechecker as typechecker

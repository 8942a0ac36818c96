"""Parts of arrays and workspace for kernels, which count no references: see `compiled.kernel`.

Private parts of Numba: its structure of an array (`numba.np.arrayobj`), and how it declares functions.
"""

from __future__ import annotations

from typing import Any

from llvmlite.ir import FunctionType, VoidType
from numba import types
from numba.core.cgutils import get_or_insert_function, intp_t, voidptr_t
from numba.extending import intrinsic


@intrinsic
def view(typing_context, array, start, count):  # type: ignore[no-untyped-def]
    """array[start : start + count] of a flat array, without what slices check: much less code to compile."""
    if not (isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C"):
        return None

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from numba.np.arrayobj import make_array, populate_array

        kind = signature.return_type
        whole, out = make_array(kind)(context, builder, arguments[0]), make_array(kind)(context, builder)  # type: ignore[no-untyped-call]
        populate_array(  # type: ignore[no-untyped-call]
            out,
            data=builder.gep(whole.data, [arguments[1]]),
            shape=[arguments[2]],
            strides=[whole.itemsize],
            itemsize=whole.itemsize,
            meminfo=whole.meminfo,
            parent=whole.parent,
        )
        if context.enable_nrt:
            context.nrt.incref(builder, kind, out._getvalue())
        return out._getvalue()

    return array(array, types.intp, types.intp), code


@intrinsic
def workspace(typing_context, like, count):  # type: ignore[no-untyped-def]
    """A flat array of `count` numbers, not initialised, of the type of another array, until `release`.

    The compiler knows that it overlaps with no other array, as of those of NumPy in compiled code. Those need
    a part of Numba that takes longer to import than a kernel takes to load, and are counted at every use.
    """
    if not isinstance(like, types.Array):
        return None

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from numba.np.arrayobj import make_array, populate_array

        kind = signature.return_type
        number = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        reserve = get_or_insert_function(builder.module, FunctionType(voidptr_t, [intp_t]), "PyMem_RawMalloc")  # type: ignore[no-untyped-call]
        reserve.return_value.add_attribute("noalias")
        data = builder.call(reserve, [builder.mul(arguments[1], number)])
        out = make_array(kind)(context, builder)  # type: ignore[no-untyped-call]
        data = builder.bitcast(data, context.get_data_type(kind.dtype).as_pointer())
        populate_array(out, data, [arguments[1]], [number], number, meminfo=None)  # type: ignore[no-untyped-call]
        return out._getvalue()

    return types.Array(like.dtype, 1, "C")(like, types.intp), code


@intrinsic
def release(typing_context, array):  # type: ignore[no-untyped-def]
    """Give back a `workspace`."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from numba.np.arrayobj import make_array

        data = make_array(signature.args[0])(context, builder, arguments[0]).data  # type: ignore[no-untyped-call]
        free = get_or_insert_function(builder.module, FunctionType(VoidType(), [voidptr_t]), "PyMem_RawFree")  # type: ignore[no-untyped-call]
        builder.call(free, [builder.bitcast(data, voidptr_t)])
        return context.get_dummy_value()

    return types.void(array), code

// One robot on a ground plane, simulated by Bullet's multi-body dynamics with PyBullet's settings: an extern "C" surface of
// opaque handles. The order in which things are created and the values that look arbitrary are what makes PyBullet 3.2.7's
// trajectories come out bit for bit; each has its reason beside it.
//
// The caller (world.rs) has checked every description: counts, indices, finite numbers. Nothing here throws but std::bad_alloc,
// which ends the process (noexcept).

#include <cstdint>
#include <memory>
#include <vector>

#include <BulletCollision/CollisionShapes/btCapsuleShape.h>
#include <BulletCollision/CollisionShapes/btCompoundShape.h>
#include <BulletCollision/CollisionShapes/btMultiSphereShape.h>
#include <BulletCollision/CollisionShapes/btSphereShape.h>
#include <BulletCollision/CollisionShapes/btStaticPlaneShape.h>
#include <BulletDynamics/Featherstone/btMultiBody.h>
#include <BulletDynamics/Featherstone/btMultiBodyConstraintSolver.h>
#include <BulletDynamics/Featherstone/btMultiBodyDynamicsWorld.h>
#include <BulletDynamics/Featherstone/btMultiBodyJointLimitConstraint.h>
#include <BulletDynamics/Featherstone/btMultiBodyJointMotor.h>
#include <BulletDynamics/Featherstone/btMultiBodyLinkCollider.h>
#include <btBulletDynamicsCommon.h>

#ifndef BT_USE_DOUBLE_PRECISION
#error "the shim needs Bullet in double precision (Debian: bullet-float64.pc of libbullet-dev)"
#endif

// Mirrors of the structures in ffi.rs.
extern "C" {

enum ShapeKind : int32_t { SHAPE_CAPSULE_BETWEEN = 0, SHAPE_CAPSULE_Z = 1, SHAPE_SPHERE = 2 };

struct FlatShape {
    ShapeKind kind;
    double from[3];   // between: first centre; z: centre
    double to[3];     // between: second centre
    double radius;
    double half;      // z: half the distance of the centres
    double angle_y;   // z: rotation about +y
};

enum JointKind : int32_t { JOINT_FIXED = 0, JOINT_REVOLUTE = 1, JOINT_PRISMATIC = 2 };

struct FlatLink {
    JointKind joint;
    int32_t parent;       // -1: base
    int32_t has_limits;
    int32_t shape_count;  // this many of the shapes, which follow each other in link order, the base's first
    double axis[3];
    double pivot[3];      // parent COM to joint; for the base its position in the world
    double com[3];        // joint to COM
    double inertia[3];
    double mass;
    double friction;
    double lower, upper;
};
}

namespace {

constexpr double kStep = 0.0165;
constexpr int kSubSteps = 4;
constexpr int kGroundGroup = btBroadphaseProxy::StaticFilter;
constexpr int kRobotGroup = btBroadphaseProxy::DefaultFilter;

btVector3 vector(const double *v) { return btVector3(v[0], v[1], v[2]); }

void store(const btVector3 &v, double *out) {
    out[0] = v.x();
    out[1] = v.y();
    out[2] = v.z();
}

// None of the supported robots can touch itself (ancestors are excluded, or the masks forbid it), so that pairs with the ground
// are all that PyBullet's own filter lets through to contacts.
struct GroundOnly : btOverlapFilterCallback {
    bool needBroadphaseCollision(btBroadphaseProxy *a, btBroadphaseProxy *b) const override {
        return (a->m_collisionFilterGroup == kGroundGroup) != (b->m_collisionFilterGroup == kGroundGroup);
    }
};

// A robot holds a few dozen pairs at most; Bullet's default pools of 4096 would take 7 MB a world. A pool that runs out falls
// back to the heap.
btDefaultCollisionConstructionInfo small_pools() {
    btDefaultCollisionConstructionInfo info;
    info.m_defaultMaxPersistentManifoldPoolSize = 64;
    info.m_defaultMaxCollisionAlgorithmPoolSize = 64;
    return info;
}

struct World {
    btDefaultCollisionConfiguration configuration{small_pools()};
    btCollisionDispatcher dispatcher{&configuration};
    GroundOnly filter;
    btHashedOverlappingPairCache pairs;
    btDbvtBroadphase broadphase{&pairs};
    btMultiBodyConstraintSolver solver;
    btMultiBodyDynamicsWorld dynamics{&dispatcher, &broadphase, &solver, &configuration};
    std::vector<std::unique_ptr<btCollisionShape>> shapes;
    std::vector<std::unique_ptr<btMultiBody>> bodies;
    std::vector<std::unique_ptr<btMultiBodyLinkCollider>> colliders;
    std::vector<std::unique_ptr<btMultiBodyConstraint>> constraints;
    btMultiBody *robot = nullptr;
    btVector3 base_position;
    btAlignedObjectArray<btQuaternion> rotations;               // scratch of forwardKinematics
    btAlignedObjectArray<btVector3> origins;                    // the same
    mutable std::vector<btVector3> angular, linear;             // scratch of compTreeLinkVelocities

    World() {
        pairs.setOverlapFilterCallback(&filter);
        dynamics.setGravity(btVector3(0, 0, -9.8));
        dynamics.getDispatchInfo().m_deterministicOverlappingPairs = true;
        btContactSolverInfo &info = dynamics.getSolverInfo();
        info.m_numIterations = 5;
        info.m_erp2 = 0.9;
        info.m_linearSlop = 1e-5;
        info.m_leastSquaresResidualThreshold = 1e-7;
    }

    ~World() {
        for (auto &constraint : constraints) dynamics.removeMultiBodyConstraint(constraint.get());
        for (auto &body : bodies) dynamics.removeMultiBody(body.get());
        for (auto &collider : colliders) dynamics.removeCollisionObject(collider.get());
    }

    World(const World &) = delete;
    World &operator=(const World &) = delete;

    template <class Shape>
    Shape *keep(Shape *shape) {
        shapes.emplace_back(shape);
        return shape;
    }

    btMultiBody *add_body(int links, const FlatLink &base) {
        bodies.emplace_back(new btMultiBody(links, base.mass, vector(base.inertia), base.mass == 0, false));
        bodies.back()->setBasePos(vector(base.pivot));
        return bodies.back().get();
    }

    // Every link has a collider, the massless ones an empty shape: colliders carry the island tags by which the solver orders
    // its constraints.
    btMultiBodyLinkCollider *add_collider(btMultiBody *body, int link, btCollisionShape *shape, double friction, bool ground) {
        colliders.emplace_back(new btMultiBodyLinkCollider(body, link));
        btMultiBodyLinkCollider *collider = colliders.back().get();
        collider->setCollisionShape(shape);
        collider->setFriction(friction);
        if (link < 0) {
            body->setBaseCollider(collider);
            if (body->getBaseMass() == 0)
                collider->setCollisionFlags(collider->getCollisionFlags() | btCollisionObject::CF_STATIC_OBJECT);
        } else {
            body->getLink(link).m_collider = collider;
        }
        dynamics.addCollisionObject(collider, ground ? kGroundGroup : kRobotGroup, ground ? kRobotGroup : kGroundGroup);
        return collider;
    }

    void constrain(btMultiBodyConstraint *constraint) {
        constraints.emplace_back(constraint);
        dynamics.addMultiBodyConstraint(constraint);
    }

    void add_ground() {
        const FlatLink base{};
        btMultiBody *ground = add_body(0, base);
        auto *plane = keep(new btStaticPlaneShape(btVector3(0, 0, 1), 0));
        add_collider(ground, -1, plane, 0.8, true)->setRestitution(0.5);
        ground->finalizeMultiDof();
        settle(ground);
        dynamics.addMultiBody(ground);
    }

    btCollisionShape *child(const FlatShape &shape) {
        switch (shape.kind) {
        case SHAPE_CAPSULE_BETWEEN: {
            // PyBullet builds a MuJoCo `fromto` capsule as two spheres; btCapsuleShape would have another inertia and margin.
            const btVector3 centres[2] = {vector(shape.from), vector(shape.to)};
            const btScalar radii[2] = {shape.radius, shape.radius};
            return keep(new btMultiSphereShape(centres, radii, 2));
        }
        case SHAPE_CAPSULE_Z:
            return keep(new btCapsuleShapeZ(shape.radius, 2 * shape.half));
        case SHAPE_SPHERE:
            return keep(new btSphereShape(shape.radius));
        }
        __builtin_unreachable();
    }

    btCollisionShape *shape_of(const FlatLink &link, const FlatShape *shapes_of_link) {
        // A lone shape at the body's origin is used as it is; everything else becomes a compound, be it empty.
        if (link.shape_count == 1 && shapes_of_link[0].kind == SHAPE_SPHERE) return child(shapes_of_link[0]);
        auto *compound = keep(new btCompoundShape());
        for (int i = 0; i < link.shape_count; ++i) {
            const FlatShape &shape = shapes_of_link[i];
            btTransform frame = btTransform::getIdentity();
            if (shape.kind == SHAPE_CAPSULE_Z) {
                frame.setOrigin(vector(shape.from) - vector(link.com));
                frame.setRotation(btQuaternion(btVector3(0, 1, 0), shape.angle_y));
            } else {
                frame.setOrigin(-vector(link.com));
            }
            compound->addChildShape(frame, child(shape));
        }
        return compound;
    }

    // links[0] is the base; links[i + 1] is Bullet's link i.
    void add_robot(const FlatLink *links, int count, const FlatShape *flat) {
        const FlatLink &base = links[0];
        robot = add_body(count, base);
        base_position = vector(base.pivot);
        add_collider(robot, -1, shape_of(base, flat), base.friction, false);
        flat += base.shape_count;
        const btQuaternion straight = btQuaternion::getIdentity();
        for (int i = 0; i < count; ++i) {
            const FlatLink &link = links[i + 1];
            const btVector3 inertia = vector(link.inertia), pivot = vector(link.pivot), com = vector(link.com);
            // The axis is not normalised: Ant's ankles rely on the raw vector.
            const btVector3 axis = vector(link.axis);
            switch (link.joint) {
            case JOINT_FIXED:
                robot->setupFixed(i, link.mass, inertia, link.parent, straight, pivot, com);
                break;
            case JOINT_REVOLUTE:
                robot->setupRevolute(i, link.mass, inertia, link.parent, straight, axis, pivot, com, true);
                break;
            case JOINT_PRISMATIC:
                robot->setupPrismatic(i, link.mass, inertia, link.parent, straight, axis, pivot, com, true);
                break;
            }
            if (link.has_limits) constrain(new btMultiBodyJointLimitConstraint(robot, i, link.lower, link.upper));
            add_collider(robot, i, shape_of(link, flat), link.friction, false);
            flat += link.shape_count;
        }
        robot->finalizeMultiDof();
        dynamics.addMultiBody(robot);
        // PyBullet's disabled motors give no solver rows, but the solver sorts the constraint list with an unstable sort on
        // equal keys: without them the limits would be solved in another order. After all limits, in link order.
        for (int i = 0; i < count; ++i) {
            if (robot->getLink(i).m_dofCount == 0) continue;
            auto *motor = new btMultiBodyJointMotor(robot, i, 0, 0, 0);
            motor->setPositionTarget(0, 0.1);
            motor->setVelocityTarget(0, 0.1);
            constrain(motor);
        }
        for (auto &constraint : constraints) constraint->finalizeMultiDof();
        angular.resize(count + 1);
        linear.resize(count + 1);
        reset(std::vector<double>(count).data());
    }

    void settle(btMultiBody *body) {
        body->forwardKinematics(rotations, origins);
        body->updateCollisionObjectWorldTransforms(rotations, origins);
    }

    // The same state in the same world gives the same future as in a new one: nothing else is carried over.
    void reset(const double *q) {
        const double still = 0;
        robot->setBasePos(base_position);
        robot->setWorldToBaseRot(btQuaternion::getIdentity());
        robot->setBaseVel(btVector3(0, 0, 0));
        robot->setBaseOmega(btVector3(0, 0, 0));
        for (int i = 0; i < robot->getNumLinks(); ++i) {
            if (robot->getLink(i).m_dofCount == 0) continue;
            robot->setJointPosMultiDof(i, &q[i]);
            robot->setJointVelMultiDof(i, &still);
        }
        settle(robot);
        for (auto &collider : colliders) dynamics.updateSingleAabb(collider.get());
        for (int i = 0; i < dispatcher.getNumManifolds(); ++i)
            dispatcher.getManifoldByIndexInternal(i)->clearManifold();
    }
};

}  // namespace

extern "C" {

int32_t provenir_bullet_version() noexcept { return btGetVersion(); }

World *provenir_bullet_create(const FlatLink *links, int32_t count, const FlatShape *shapes) noexcept {
    auto world = std::make_unique<World>();
    world->add_ground();
    world->add_robot(links, count, shapes);
    return world.release();
}

void provenir_bullet_destroy(World *world) noexcept { delete world; }

void provenir_bullet_reset(World *world, const double *q) noexcept { world->reset(q); }

void provenir_bullet_step(World *world, const double *torques) noexcept {
    for (int i = 0; i < world->robot->getNumLinks(); ++i)
        if (world->robot->getLink(i).m_dofCount == 1) world->robot->addJointTorqueMultiDof(i, 0, torques[i]);
    world->dynamics.stepSimulation(kStep, kSubSteps, kStep / kSubSteps);
}

void provenir_bullet_joints(const World *world, double *q, double *qdot) noexcept {
    for (int i = 0; i < world->robot->getNumLinks(); ++i) {
        const bool moves = world->robot->getLink(i).m_dofCount == 1;
        q[i] = moves ? world->robot->getJointPos(i) : 0;
        qdot[i] = moves ? world->robot->getJointVel(i) : 0;
    }
}

void provenir_bullet_positions(const World *world, double *out) noexcept {
    for (int i = 0; i < world->robot->getNumLinks(); ++i)
        store(world->robot->getLink(i).m_cachedWorldTransform.getOrigin(), &out[3 * i]);
}

void provenir_bullet_pose(const World *world, int32_t link, double *position, double *rotation) noexcept {
    const btTransform pose =
        link < 0 ? world->robot->getBaseWorldTransform() : world->robot->getLink(link).m_cachedWorldTransform;
    const btQuaternion quaternion = pose.getRotation();
    store(pose.getOrigin(), position);
    rotation[0] = quaternion.x();
    rotation[1] = quaternion.y();
    rotation[2] = quaternion.z();
    rotation[3] = quaternion.w();
}

// Poses as they are now, from the joint transforms, which a step leaves current; seven numbers a body, the base first.
void provenir_bullet_poses(const World *world, double *out) noexcept {
    for (int i = -1; i < world->robot->getNumLinks(); ++i, out += 7) {
        btQuaternion rotation;
        world->robot->localFrameToWorld(i, btMatrix3x3::getIdentity()).getRotation(rotation);
        store(world->robot->localPosToWorld(i, btVector3(0, 0, 0)), out);
        for (int axis = 0; axis < 4; ++axis) out[3 + axis] = rotation[axis];
    }
}

void provenir_bullet_velocity(const World *world, int32_t link, double *out) noexcept {
    if (link < 0) {
        store(world->robot->getBaseVel(), out);
        return;
    }
    world->robot->compTreeLinkVelocities(world->angular.data(), world->linear.data());
    const btMatrix3x3 &basis = world->robot->getLink(link).m_cachedWorldTransform.getBasis();
    store(basis * world->linear[link + 1], out);
}

void provenir_bullet_contacts(const World *world, uint8_t *touching) noexcept {
    for (int i = 0; i < world->robot->getNumLinks(); ++i) touching[i] = 0;
    for (int i = 0; i < world->dispatcher.getNumManifolds(); ++i) {
        const btPersistentManifold *manifold =
            const_cast<btCollisionDispatcher &>(world->dispatcher).getManifoldByIndexInternal(i);
        if (manifold->getNumContacts() == 0) continue;
        for (const btCollisionObject *object : {manifold->getBody0(), manifold->getBody1()}) {
            const btMultiBodyLinkCollider *collider = btMultiBodyLinkCollider::upcast(object);
            if (collider != nullptr && collider->m_multiBody == world->robot && collider->m_link >= 0)
                touching[collider->m_link] = 1;
        }
    }
}
}
